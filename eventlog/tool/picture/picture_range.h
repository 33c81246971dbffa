/*
 * picture_range.h - chooses the range of the axes of a panel. Pure.
 *
 * The axis of values spans what is drawn, unless a few points dwarf the rest: the value of an untrained net at step 0,
 * a spike, a run that diverges. These are found from the inner values: of each curve all but the lowest and the highest
 * 5 % (at least one point of each, as in TensorBoard's "Ignore outliers in chart scaling"), without values that
 * explode: that are beyond the quartiles by more than 100 times the interquartile range of all curves together. The
 * best value of each curve is always an inner value, or its median if neither lower nor higher is better. R is the
 * range of the inner values.
 *
 *   off    the axis spans all values
 *   on     it spans the inner values, as TensorBoard's does
 *   auto   an end of it is drawn in only where values are more than 4 R beyond the inner ones, so that these would
 *          share less than a fifth of the height; then it is the last value that is within R / 2 of them
 *
 * For a curve with more than 512 points, the inner values are chosen from every n-th.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_RANGE_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_RANGE_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"

struct picture_range {
    double x0, x1, y0, y1;  /* y on its scale; x0 < x1 and y0 < y1 */
    size_t above, below;    /* points outside y0 to y1 */
    double highest, lowest; /* of these, as values */
    size_t gaps;            /* points that cannot be placed */
    unsigned marks;         /* 1 << enum picture_mark of the marks that are drawn */
    int failed;             /* out of memory: the ranges are meaningless */
};

/* raw: the values before smoothing are drawn too. air: the share of the height to leave free above and below. */
struct picture_range picture_range_of(const struct picture *p, const struct picture_panel *panel, int raw, double air);

/* Appends which points are not drawn where they are: "2 points above, up to 2.31; 1 point not above 0"; nothing if
 * there is none. */
void picture_range_notes(const struct picture *p, const struct picture_range *r, struct buffer *out);

/* Parses "0,1", "0.5," or ",10" into its ends, NaN for one that is left out. 1, or 0 if it is not a range. */
int picture_range_parse(const char *text, double *low, double *high);

#endif
