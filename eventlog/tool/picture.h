/*
 * picture.h - what is drawn: panels of curves over an axis, and how their values are scaled, smoothed and written.
 * Pure. picture_svg.h makes a document of it, chart.h lines of text.
 */
#ifndef EVENTLOG_TOOL_PICTURE_H
#define EVENTLOG_TOOL_PICTURE_H

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
    enum picture_axis axis; /* what the curves run over */
    int lower_is_better;
};

struct picture {
    const char *title;       /* of the whole; NULL: none */
    const char *const *runs; /* what they are called, by number */
    size_t run_count;
    const struct picture_panel *panels;
    size_t panel_count;
    size_t columns;   /* of panels, from the left, line by line; 0: as many as look well */
    double smoothing; /* weight of the past in the moving average, 0 (none) to below 1; the raw curve stays, faint */
    int log_y;        /* logarithms on the axis of values; what is not above 0 is a gap */
};

/* Takes the first of the words of --x ("step", "wall", "relative", commas between) off *words: 1 and the axis it means,
 * or 0 at the end. */
int picture_axis_next(const char **words, enum picture_axis *axis);

/* v on the axis as text; a step between at most `most` ticks over span, in seconds where
 * is_time; what can be drawn at all. */
void picture_axis_text(enum picture_axis axis, double v, double span, char *out, size_t size);
double picture_tick_step(double span, int most, int is_time);
int picture_placeable(double x, double y);

/* Where a value stands on its axis: itself or its logarithm (base 10), NaN where it has none. */
double picture_scale(const struct picture *p, double y);

/* A moving average as TensorBoard's page draws it: exponential, corrected for its start; what is not finite passes. */
struct picture_average {
    double smoothing, sum, weight; /* smoothing as in struct picture; the others begin as 0 */
};
double picture_smooth(struct picture_average *a, double y);

/* Last and best point that can be placed; NULL: none. */
struct picture_summary {
    const struct picture_point *last, *best;
};
struct picture_summary picture_summary_of(const struct picture_curve *c, int lower_is_better);

#endif
