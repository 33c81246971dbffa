/*
 * published_pairs.h - every published figure with what was measured in its place, as rows for programs. Pure.
 */
#ifndef TRAINER_COMPARE_PUBLISHED_PAIRS_H
#define TRAINER_COMPARE_PUBLISHED_PAIRS_H

#include "trainer/compare/comparison.h"

#include "base/buffer.h"

enum { PUBLISHED_PAIRS_MOST = 20 };

struct published_pair {
    char figure[48];
    const char *system;   /* whose figure it is */
    const char *strategy; /* the one here that does the same */
    int64_t workers;
    double published, ours; /* ours 0: not measured */
};

/* Those of the table with this name of published.h. Returns how many; 0: there is no such table. */
size_t published_pairs(const struct comparison *c, const char *table, struct published_pair *pairs);

/* A line of names, and one for each pair of the tables, a list with commas: table, figure, system, strategy, workers,
 * published, ours, and ours/published, the last two empty where nothing was measured. */
void published_pairs_csv(const struct comparison *c, const char *tables, struct buffer *out);

#endif
