/*
 * histogram_limits.h - TensorFlow's default buckets of a histogram: 1,551 limits, and which of them a value goes to.
 *
 * The limits are -DBL_MAX, -P falling in magnitude, 0, P rising, DBL_MAX, with P = 1e-12 and then 1.1 times the one
 * before while that is below 1e20: 774 values, by repeated multiplication in double, so that the bits are TensorFlow's
 * (tensorflow/core/lib/histogram/histogram.cc). A value goes to the first limit above it.
 *
 * Doubles with equal upper 16 bits (sign, exponent, four bits of the fraction) lie within 6.25 % of each other, limits
 * 10 % apart: at most one limit lies among them. So a table with the bucket of the smallest of them and one comparison
 * replace the search. Pure; any number of threads.
 */
#ifndef EVENTLOG_WRITE_KINDS_HISTOGRAM_LIMITS_H
#define EVENTLOG_WRITE_KINDS_HISTOGRAM_LIMITS_H

#include "base/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_POSITIVE = 774, HISTOGRAM_LIMITS = 2 * HISTOGRAM_POSITIVE + 3 };

struct histogram_limits {
    double limits[HISTOGRAM_LIMITS]; /* right edges, rising */
    /* private */
    double next[HISTOGRAM_LIMITS]; /* the same, but nothing is above the last one: DBL_MAX belongs below it */
    uint16_t first[1 << 16];       /* by upper 16 bits: the bucket of the smallest of these doubles */
};

/* The table, made by the first call; never NULL. */
const struct histogram_limits *histogram_limits(void);

/* The bucket of a finite value: the index of the first limit above it, for DBL_MAX that of the last one. */
static inline size_t histogram_limits_bucket(const struct histogram_limits *l, double x)
{
    const size_t first = l->first[double_bits(x) >> 48];

    return first + (size_t)(l->next[first] <= x);
}

#endif
