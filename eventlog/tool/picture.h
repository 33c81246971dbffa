/*
 * picture.h - curves as a self-contained SVG: one panel a tag, one colour and dash a run, with axes, a legend, and the
 * final and the best value of each curve marked and written out. Readable on light and dark ground.
 */
#ifndef EVENTLOG_TOOL_PICTURE_H
#define EVENTLOG_TOOL_PICTURE_H

#include "base/buffer.h"

#include <stddef.h>

enum picture_axis { PICTURE_STEP, PICTURE_WALL, PICTURE_RELATIVE };

struct picture_point {
    double x, y; /* x: step, seconds since 1970, or seconds; y may be NaN or infinite: a gap */
};

struct picture_curve {
    size_t run;                         /* index into the runs: colour and dash */
    const struct picture_point *points; /* in drawing order */
    size_t count;
};

struct picture_panel {
    const char *title; /* title_length bytes */
    size_t title_length;
    const struct picture_curve *curves;
    size_t count;
    int lower_is_better;
};

struct picture {
    const char *const *runs; /* names */
    size_t run_count;
    const struct picture_panel *panels;
    size_t panel_count;
    enum picture_axis axis;
    double smoothing; /* weight of the past in the moving average, 0 (none) to below 1; the raw curve stays, faint */
};

/* Appends the document; ask buffer_ok() at the end. */
void picture_draw(struct buffer *out, const struct picture *p);

#endif
