/*
 * picture_range.h - what the axes of a panel span. Pure.
 *
 * The axis of values spans what is drawn, unless a few points dwarf the rest: the value of an untrained net at step 0,
 * a spike, a run that diverges. Which those are is judged by the inner values: of each curve all but the lowest and the
 * highest 5 % (at least one point of each, as TensorBoard's "Ignore outliers in chart scaling" has it), and none that
 * explodes: is more than 100 times the interquartile range of all curves together beyond the quartiles. The best value
 * of each curve is always among them, or its median where neither more nor less is better. R is what they span.
 *
 *   off    the axis spans all values
 *   on     it spans the inner values, as TensorBoard's does
 *   auto   an end of it is drawn in only where values are more than 4 R beyond the inner ones, so that these would
 *          share less than a fifth of the height; then it is the last value that is within R / 2 of them
 *
 * Of a curve with more than 512 points every n-th is looked at for its inner values.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_RANGE_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_RANGE_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"

struct picture_range {
    double x0, x1, y0, y1;  /* y on its scale; x0 < x1 and y0 < y1 */
    size_t above, below;    /* points outside of y0 to y1 */
    double highest, lowest; /* of these, as values */
    size_t gaps;            /* points that cannot be placed */
    unsigned marks;         /* 1 << enum picture_mark of what there is */
    int failed;             /* out of memory: the ends mean nothing */
};

/* raw: the values before smoothing are drawn, too. air: how much of the height stays free above and below. */
struct picture_range picture_range_of(const struct picture *p, const struct picture_panel *panel, int raw, double air);

/* Appends what is not seen as it is: "2 points above, up to 2.31; 1 point not above 0"; nothing if there is none. */
void picture_range_notes(const struct picture *p, const struct picture_range *r, struct buffer *out);

/* "0,1", "0.5," and ",10" to its ends, NaN for one that is left out: 1; 0: it is no range. */
int picture_range_parse(const char *text, double *low, double *high);

#endif
