/*
 * downsample.h - which points of a series to keep when there are too many. Pure functions; keep[i] becomes 1 for the
 * points that stay and 0 for the others. The first and the last always stay.
 */
#ifndef EVENTLOG_REWRITE_DOWNSAMPLE_H
#define EVENTLOG_REWRITE_DOWNSAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Every k-th of n, counted from the first; k > 0. */
void downsample_every(size_t n, size_t k, uint8_t *keep);

/* At most `most` (2 at least) of n, evenly spaced by their number. */
void downsample_even(size_t n, size_t most, uint8_t *keep);

/*
 * At most `most` (2 at least) points of the curve y over x such that it looks the same: largest triangle three buckets
 * (Steinarsson, "Downsampling time series for visual representation", 2013). The points between first and last are cut
 * into most - 2 buckets of equal count; of each the one stays that spans the largest triangle with the one kept before
 * and the mean of the bucket after. So peaks stay, and noise looks like noise. x in any order; of a bucket in which no
 * point is finite the first stays.
 */
void downsample_curve(const double *x, const double *y, size_t n, size_t most, uint8_t *keep);

#endif
