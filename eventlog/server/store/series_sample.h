/*
 * series_sample.h - which points of a series answer a request for fewer than there are. Exactly as many as asked for,
 * always the last one, and else those whose step comes first in a fixed random order of all steps: a uniform sample
 * that hardly changes while a series grows, and is the same in series logged at the same steps. Where a curve of
 * numbers begins or ceases to be finite, the points on both sides are taken before others, up to a quarter of the
 * sample.
 *
 * With extremes, the sample instead has the lowest and the highest point of each of equally long stretches.
 */
#ifndef EVENTLOG_SERVER_STORE_SERIES_SAMPLE_H
#define EVENTLOG_SERVER_STORE_SERIES_SAMPLE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct series_view;

/* The place of a step in that order: SplitMix64's function (Steele, Lea, Flood 2014). */
static inline uint64_t series_sample_order(int64_t step)
{
    uint64_t z = (uint64_t)step + 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct series_sample {
    size_t wanted; /* as asked for */
    int extremes;
    size_t count;
    uint32_t rows[]; /* rising */
};

/* The rows of v for 0 < wanted < v->count points, wanted at most UINT32_MAX. The sample is kept in the view, and the
 * same request returns it again. NULL: no memory; else series_sample_drop() it. Any thread. */
const struct series_sample *series_sample_take(struct series_view *v, size_t wanted, int extremes);
void series_sample_drop(struct series_view *v, const struct series_sample *s);

#endif
