/*
 * micro_shards.h - a worker's batch in equal parts, whose gradients are computed one by one and added in a fixed tree.
 *
 * The part, a micro-shard, is the unit of computing: its shapes, and so its bits, do not depend on how many workers
 * share the batch. Source: strategies, "Bitwise reproducible reduction", rules 1 to 4. The tree: micro-shards are its
 * leaves, a node is left + right; where their number is no power of two, whole trees are added from the right. What is
 * added holds sums, so that nothing is divided before the optimizer divides by the weight. Batch norm takes its
 * statistics over a micro-shard. One thread.
 */
#ifndef TRAINER_COLLECTIVE_MICRO_SHARDS_H
#define TRAINER_COLLECTIVE_MICRO_SHARDS_H

#include "base/error.h"
#include "model/network.h"

struct micro_shards;

/* For batches in `count` parts, of a network (borrowed until free) with a max_batch of one part. ERR_NOMEM. */
int micro_shards_new(struct micro_shards **out, struct network *n, int count, struct error *e);
void micro_shards_free(struct micro_shards *m); /* NULL is fine */

/* As network_train of the whole batch, whose size is a multiple of `count` and whose samples are named; sink hears of
 * the last part's backward pass, when the elements that it passes hold the sums of all parts. The score is summed in
 * the order of the parts. */
int micro_shards_train(struct micro_shards *m, const struct batch *batch, uint64_t seed,
                       const struct gradient_sink *sink, struct score *score);

#endif
