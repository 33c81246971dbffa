/* curves_picture.h - lays curves (curves.h) out as a picture (picture.h), and writes it. */
#ifndef EVENTLOG_TOOL_PICTURE_CURVES_PICTURE_H
#define EVENTLOG_TOOL_PICTURE_CURVES_PICTURE_H

#include "base/buffer.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/picture/curve_group.h"
#include "eventlog/tool/picture/curves.h"
#include "eventlog/tool/picture/picture.h"

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
