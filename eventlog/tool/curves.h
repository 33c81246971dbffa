/*
 * curves.h - the scalar series of runs side by side, for commands that compare or draw them: read, and chosen by tag.
 */
#ifndef EVENTLOG_TOOL_CURVES_H
#define EVENTLOG_TOOL_CURVES_H

#include "eventlog/scalar_series.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"

struct curves_tag {
    const char *text; /* borrowed from a series */
    size_t length, runs;
    int better; /* -1: less is, 1: more is, 0: neither; by --lower and --higher, else as tag_better() */
};

struct curves {
    struct scan *scan;
    const char *view, *x;             /* words of --view and --x: "all" and "step" where they are not given */
    const char *title;                /* as in struct picture (picture.h), here and next */
    double smoothing;
    int log_y;
    struct selection lower, higher;   /* tags of which less, or more, is better */
    struct option_list label_options; /* RUN=TEXT */
    struct point_range range;         /* points outside are not read */
    struct scalar_run *runs;
    const char **names;
    const char **labels; /* what people read: the name, or the TEXT of --label */
    size_t count;
    struct curves_tag *tags; /* those to be shown */
    size_t tag_count;
};

/* The options that say what is drawn, and how: rows of a table. */
#define CURVES_OPTIONS(w) \
    { OPTION_CHOICES, 0, "x", &(w).x, .help = "Draw the curves over the step, the time of day, or the time since the " \
      "run's first point; several, as in 'step,relative', draw a panel each, side by side (default step)", \
      .choices = "step|wall|relative" }, \
    { OPTION_DOUBLE, 0, "smoothing", &(w).smoothing, "W", .help = "draw a moving average with this weight of the " \
      "past, 0 to 0.999, as TensorBoard's page does, in a picture over the faint curve (default 0: none)", \
      .minimum = 0, .maximum = 0.999 }, \
    { OPTION_TEXT, 0, "title", &(w).title, .argument = "TEXT", .help = "Put TEXT above the picture" }, \
    { OPTION_LIST, 0, "label", &(w).label_options, .argument = "RUN=TEXT", \
      .help = "Show TEXT in place of the name of RUN; may be repeated" }, \
    { OPTION_FLAG, 0, "log-y", &(w).log_y, .help = "draw values on a logarithmic scale; those that are not above 0 " \
      "are gaps" }, \
    POINT_RANGE_OPTIONS((w).range), \
    { OPTION_CHOICE, 0, "view", &(w).view, .help = "every point; what TensorBoard would show; or what restarts meant " \
      "(default all)", .choices = "all|tensorboard|session" }, \
    { OPTION_LIST, 0, "lower", &(w).lower.patterns, .argument = "GLOB", .help = "Take the least value as the best " \
      "for tags that match (default: for words such as loss, error and seconds)" }, \
    { OPTION_LIST, 0, "higher", &(w).higher.patterns, .argument = "GLOB", .help = "Take the greatest value as the " \
      "best for tags that match (default: for words such as accuracy, reward and images/sec; other tags have no " \
      "best value)" }

/* Reads the wanted runs of the scan, points in reading order. Release also after an error. */
int curves_read(struct curves *w, struct error *e);
int curves_sort_by_step(struct curves *w, struct error *e);
/* The tags to be shown: with --tag all that match, else those that all runs have, else all. */
int curves_choose_tags(struct curves *w, struct error *e);
void curves_release(struct curves *w);

/* The run's series of that tag, or NULL. */
const struct scalar_series *curves_series(const struct curves *w, size_t run, const struct curves_tag *tag);

#endif
