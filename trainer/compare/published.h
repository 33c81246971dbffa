/*
 * published.h - a comparison in the form of comparisons that others have published, with their figures under ours, the
 * ratio of the two, and what cannot be compared. Pure.
 *
 * Source of the figures: the seed documents (specification of the seed models, sections 2 to 6).
 */
#ifndef TRAINER_COMPARE_PUBLISHED_H
#define TRAINER_COMPARE_PUBLISHED_H

#include "trainer/compare/comparison_text.h"

typedef void published_table(const struct comparison *c, const struct text_style *style, struct buffer *out);

/* The tables: ROW(the end of a function's name, the name for --table). */
#define PUBLISHED_TABLES(ROW) \
    ROW(ps_against_mpi, "ps-against-mpi") \
    ROW(steps_101_200, "steps-101-200") \
    ROW(per_worker, "per-worker") \
    ROW(ratios, "ratios") \
    ROW(epoch_seconds, "epoch-seconds")

#define PUBLISHED_DECLARATION(function, name) published_table published_##function;
PUBLISHED_TABLES(PUBLISHED_DECLARATION)

#endif
