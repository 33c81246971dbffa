/*
 * downsample.h - chooses which points of a series to keep if there are too many. Pure functions; keep[i] becomes 1 for
 * points to keep and 0 for the others. The first and the last are always kept.
 */
#ifndef EVENTLOG_REWRITE_DOWNSAMPLE_H
#define EVENTLOG_REWRITE_DOWNSAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Keeps every k-th of n points, counted from the first; k > 0. */
void downsample_every(size_t n, size_t k, uint8_t *keep);

/* Keeps at most `most` (at least 2) of n points, evenly spaced by index. */
void downsample_even(size_t n, size_t most, uint8_t *keep);

/*
 * Keeps at most `most` (at least 2) points of the curve y over x so that it looks the same: largest triangle three
 * buckets (Steinarsson, "Downsampling time series for visual representation", 2013). The points between first and last
 * are divided into most - 2 buckets of equal count; each bucket keeps the point that forms the largest triangle with
 * the point kept before it and the mean of the next bucket. So peaks stay, and noise looks like noise. x may be in any
 * order; a bucket without finite points keeps its first.
 */
void downsample_curve(const double *x, const double *y, size_t n, size_t most, uint8_t *keep);

#endif
