/*
 * curves.h - the scalar series of runs side by side, for commands that compare or draw them: read, chosen by tag, and
 * laid out as a picture.
 */
#ifndef EVENTLOG_TOOL_CURVES_H
#define EVENTLOG_TOOL_CURVES_H

#include "eventlog/scalar_series.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/picture.h"
#include "eventlog/tool/scan.h"

enum { CURVES_PANELS_MOST = 60 };

struct curves_tag {
    const char *text; /* borrowed from a series */
    size_t length, runs;
};

struct curves {
    struct scan *scan;
    struct scalar_run *runs;
    const char **names;
    size_t count;
    struct curves_tag *tags; /* those to be shown */
    size_t tag_count;
    struct option_list lower, higher; /* globs: tags of which less, or more, is better */
};

/* Reads the wanted runs of the scan. by_step: points are sorted by step. Release also after an error. */
int curves_read(struct curves *w, enum scalar_view view, int by_step, struct error *e);
/* The tags to be shown: with --tag all that match, else those that all runs have, else all. */
int curves_choose_tags(struct curves *w, struct error *e);
void curves_release(struct curves *w);

/* The run's series of that tag, or NULL. */
const struct scalar_series *curves_series(const struct curves *w, size_t run, const struct curves_tag *tag);
/* Whether less is better, by --lower and --higher or by words in the tag. */
int curves_lower_is_better(const struct curves *w, const char *tag);

/* The first `most` chosen tags as a picture, a panel each; that there are more is told. */
struct curves_picture {
    struct picture picture;
    struct picture_panel *panels;
    struct picture_curve *curves;
    struct picture_point *points;
    double *starts;
};
int curves_picture_new(struct curves_picture *p, const struct curves *w, enum picture_axis axis, size_t most,
                       struct error *e);
void curves_picture_release(struct curves_picture *p); /* also after an error */

/* The picture as an SVG document; style: axis, smoothing and scale of it. */
int curves_print_svg(const struct curves *w, const struct picture *style, struct output *out, struct error *e);

#endif
