/*
 * staleness.h - counts pushes by their staleness: the updates made between a worker's pull and the update with its
 * push. The histogram is exact below 16, then has two ranges for each power of two, and its counts add up to the
 * number of pushes. Pure.
 */
#ifndef TRAINER_SERVER_STALENESS_H
#define TRAINER_SERVER_STALENESS_H

#include <stddef.h>
#include <stdint.h>

enum { STALENESS_EXACT = 16, STALENESS_RANGES = STALENESS_EXACT + 2 * 12 /* the last one begins at 49152 */ };

struct staleness {
    int64_t pushes, max;
    double sum;
    int64_t counts[STALENESS_RANGES];
};

void staleness_add(struct staleness *s, int64_t stale); /* stale >= 0 */
double staleness_mean(const struct staleness *s);       /* 0 without pushes */
/* Range i is from *from to *to, both included; the last one is open: *to is INT64_MAX. */
void staleness_range(size_t i, int64_t *from, int64_t *to);

#endif
