/*
 * micro_shards.h - divides a worker's batch into equal parts, computes their gradients one by one, and adds them in a
 * fixed tree.
 *
 * A part, a micro-shard, is the unit of computation: its shapes, and so its bits, do not depend on how many workers
 * share the batch. Source: strategies, "Bitwise reproducible reduction", rules 1 to 4. The tree: micro-shards are its
 * leaves, a node is left + right; if their number is not a power of two, whole trees are added from the right. The
 * nodes are sums: only the optimizer divides, by the weight. Batch norm takes its statistics over a micro-shard. One
 * thread.
 */
#ifndef TRAINER_COLLECTIVE_MICRO_SHARDS_H
#define TRAINER_COLLECTIVE_MICRO_SHARDS_H

#include "base/error.h"
#include "model/network.h"

struct micro_shards;

/* For batches of `count` parts; n, whose max_batch is the size of a part, is borrowed until free. ERR_NOMEM. */
int micro_shards_new(struct micro_shards **out, struct network *n, int count, struct error *e);
void micro_shards_free(struct micro_shards *m); /* NULL is fine */

/* As network_train of the whole batch, whose size must be a multiple of `count` and whose samples must be given. sink
 * is called in the last part's backward pass, when the elements hold the sums of all parts. The score is summed in the
 * order of the parts. With more than one part, gradients that could come as rows are part of the sums. */
int micro_shards_train(struct micro_shards *m, const struct batch *batch, uint64_t seed,
                       const struct gradient_sink *sink, struct score *score);

#endif
