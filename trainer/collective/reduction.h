/*
 * reduction.h - the exchange vectors that the workers of a step hand on, and their sum.
 *
 * Without micro-shards each worker has one vector, and they are added in worker order. With micro-shards a worker has
 * one for each node of its part of the tree (reduction_tree.h), and they are added to the root: the same bits for any
 * number of workers.
 */
#ifndef TRAINER_COLLECTIVE_REDUCTION_H
#define TRAINER_COLLECTIVE_REDUCTION_H

#include "base/error.h"
#include "trainer/collective/reduction_tree.h"

#include <stddef.h>

struct reduction {
    int workers, micro_shards; /* micro_shards: of all workers; 0: none */
    int count;                 /* vectors of all workers */
    int *first;                /* (workers + 1) worker w has vectors [first[w], first[w + 1]) */
    struct tree_node *nodes;   /* (count) what each vector is the sum of; NULL without micro-shards */
};

/* micro_shards: 0, or at least as many as workers. ERR_NOMEM. On OK reduction_release() it. */
int reduction_init(struct reduction *out, int workers, int micro_shards, struct error *e);
void reduction_release(struct reduction *r); /* zeroed is fine */

/* How many vectors worker w hands on; the largest number that any worker does. */
int reduction_vectors(const struct reduction *r, int w);
int reduction_most_vectors(const struct reduction *r);

/* out[i] = the sum of parts[0][i] to parts[count - 1][i], the vectors in their order, for i in [from, to): the same
 * bits however the vectors are divided. parts and out must not overlap, except that out may be parts[0]. */
void reduction_sum(const struct reduction *r, real *out, const real *const *parts, size_t from, size_t to);

#endif
