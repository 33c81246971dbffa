/* curves_picture.h - gathers curves, lays them out as a picture (picture.h), and writes it. */
#ifndef EVENTLOG_TOOL_PICTURE_CURVES_PICTURE_H
#define EVENTLOG_TOOL_PICTURE_CURVES_PICTURE_H

#include "base/buffer.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/picture/curve_group.h"
#include "eventlog/tool/picture/picture.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"

/* ---- curves ------------------------------------------------------------------------------------------------------ */

/*
 * Reads the scalar series of several runs and chooses them by tag, for commands that compare or draw them.
 */

struct curves_tag {
    const char *text;    /* borrowed from a series */
    size_t length, runs; /* runs: how many have it */
    int said;            /* 1: a line has said which these are */
    int better;          /* -1: lower is, 1: higher is, 0: neither; by --lower and --higher, else as tag_better() */
};

/* of a run: the lowest wall time and the lowest step of its points; infinite if it has none */
struct curves_start {
    double wall_time, step;
};

struct curves {
    struct scan *scan;
    const char *view, *x, *clip; /* words of --view, --x and --clip-outliers */
    const char *title;           /* as in struct picture (picture.h), like the next two */
    double smoothing;
    int log_y;
    const char *y_range, *band;       /* as given; NULL: not */
    double low, high;                 /* of y_range, once the options are settled; NaN: not given */
    struct option_list groups;        /* as curve_group.h has them */
    struct selection lower, higher;   /* tags of which lower, or higher, values are better */
    struct option_list label_options; /* RUN=TEXT */
    struct point_range range;         /* points outside are not read */
    struct scalar_run *runs;
    const char **names;
    const char **labels; /* what people read: the name, or the TEXT of --label */
    struct curves_start *starts;
    size_t count;
    struct curves_tag *tags; /* those to be shown */
    size_t tag_count;
};

/* Rows of a table: the options that say what is drawn, and how. */
/* clang-format off */
#define CURVES_OPTIONS(w) \
    { OPTION_CHOICES, 0, "x", &(w).x, .help = "Draw the curves over the step, the steps since the run's first point, " \
      "the time of day, or the time since the run's first point; several, as in 'step,relative', draw a panel each, " \
      "side by side (default step)", .choices = PICTURE_AXIS_WORDS }, \
    { OPTION_DOUBLE, 0, "smoothing", &(w).smoothing, .argument = "W", .help = "Draw a moving average that gives the " \
      "past the weight W, 0 to 0.999, as TensorBoard does; pictures show the values themselves faintly behind it " \
      "(default 0: none)", .minimum = 0, .maximum = 0.999 }, \
    { OPTION_FLAG, 0, "log-y", &(w).log_y, .help = "Draw values on a logarithmic scale, with gaps where they are not " \
      "above 0" }, \
    { OPTION_TEXT, 0, "y-range", &(w).y_range, .argument = "LOW,HIGH", .help = "Draw values from LOW to HIGH; leave " \
      "one out to have it chosen, as in '0,' (default: the range of the values)" }, \
    { OPTION_CHOICE, 0, "clip-outliers", &(w).clip, .help = "Leave out of the axis the few values that would flatten " \
      "the rest, such as that of an untrained model at step 0, and mark them with arrows. on: leave out all " \
      "outliers, as TensorBoard does; off: show every value (default auto)", .choices = "auto|on|off" }, \
    { OPTION_LIST, 0, "group", &(w).groups, .argument = "GLOB[=NAME]", .help = "Draw the mean of the runs that match " \
      "GLOB, called NAME, in place of the runs. Without NAME, compare GLOB with parts of their names: 'seed-*' draws " \
      "one mean of mpi/seed-1 and mpi/seed-2 and another of ps/seed-1 and ps/seed-2. May be repeated" }, \
    { OPTION_CHOICE, 0, "band", &(w).band, .help = "Show one standard deviation around the mean of a group, or all " \
      "values from minimum to maximum (default deviation). Without --group all runs are one group", \
      .choices = "deviation|min-max" }, \
    { OPTION_TEXT, 0, "title", &(w).title, .argument = "TEXT", .help = "Put TEXT above the picture" }, \
    { OPTION_LIST, 0, "label", &(w).label_options, .argument = "RUN=TEXT", \
      .help = "Show TEXT in place of the name of RUN; may be repeated" }, \
    POINT_RANGE_OPTIONS((w).range), \
    SCAN_VIEW_OPTION((w).view), \
    { OPTION_LIST, 0, "lower", &(w).lower.patterns, .argument = "GLOB", .help = "Take the lowest value as the best " \
      "for tags that match GLOB (default: tags with words such as loss, error and seconds)" }, \
    { OPTION_LIST, 0, "higher", &(w).higher.patterns, .argument = "GLOB", .help = "Take the highest value as the " \
      "best for tags that match GLOB (default: tags with words such as accuracy, reward and images/sec; other tags " \
      "have no best value)" }
/* clang-format on */
/* The options before the command line is parsed. */
#define CURVES_DEFAULTS .view = "all", .x = "step", .clip = "auto", .range = POINT_RANGE_ALL

/* Call it once the command line is parsed. ERR_ARG: the value of an option makes no sense. */
int curves_settle(struct curves *w, struct error *e);
/* Reads the wanted runs of the scan in natural order, points in reading order. Release also after an error. */
int curves_read(struct curves *w, struct error *e);
int curves_sort_by_step(struct curves *w, struct error *e);
/* Chooses the tags to show: with --tag all that match, else those that all runs have, else all. Of those that only some
 * runs have, logs which have them, and whether they are left out. */
int curves_choose_tags(struct curves *w, struct error *e);
void curves_release(struct curves *w);

/* The run's series of that tag, or NULL. */
const struct scalar_series *curves_series(const struct curves *w, size_t run, const struct curves_tag *tag);

/* ---- curves picture ---------------------------------------------------------------------------------------------- */

enum { CURVES_PANELS_MOST = 60 };

/* what is drawn as one: a run, or the runs of a group */
struct curves_line {
    struct buffer label; /* what people read */
    const char *name;    /* of the run, or of the group */
    struct buffer group; /* empty: a run by itself */
    size_t option, runs; /* option: 1 + which --group */
};

struct curves_picture {
    struct picture picture;
    struct curves_line *lines; /* indexed by picture_curve.run */
    size_t line_count;
    size_t *line_of; /* the line of each run of the curves */
    enum curve_band band;
    /* private: what the picture points into */
    const char **labels;
    size_t *styles;
    struct picture_panel *panels;
    struct picture_curve *curves, *members;
    struct picture_point *points, *means, *lows, *highs;
    struct buffer settings;
    size_t curve_count, point_count, mean_count;
};

/* Makes a picture of the first `most` chosen tags, a panel for each tag and axis; if there are more tags, that is
 * reported. Sorts the points by step if a panel runs over steps. */
int curves_picture_new(struct curves_picture *p, struct curves *w, size_t most, struct error *e);
void curves_picture_release(struct curves_picture *p); /* also after an error */

/* The points of a series as they are drawn: x is relative to `origin`; if the axis counts steps, points ascend by step,
 * and the last of several at one step is drawn. out has room for s->count points; returns how many there are. */
size_t curves_picture_points(const struct scalar_series *s, enum picture_axis axis, double origin,
                             struct picture_point *out);

/* Writes the picture in a format for which curves_picture_is() says 1: "svg" or "png". */
int curves_picture_is(const char *format);
int curves_picture_print(struct curves *w, const char *format, struct output *out, struct error *e);

#endif
