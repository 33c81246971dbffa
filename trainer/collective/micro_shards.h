/*
 * micro_shards.h - divides a worker's batch into equal parts, computes their gradients one by one, and adds them in a
 * fixed tree (reduction_tree.h).
 *
 * A part, a micro-shard, is the unit of computation: its shapes, and so its bits, do not depend on how many workers
 * share the batch. Source: strategies, "Bitwise reproducible reduction", rules 1 to 4. A worker hands on one vector for
 * each node of the tree that is whole within its part. The nodes are sums: only the optimizer divides, by the weight.
 * Batch norm takes its statistics over a micro-shard.
 *
 * Several threads can share the parts: thread t of n computes parts floor(t P / n) to floor((t + 1) P / n) of all P, in
 * a network of its own that reads the same weights, and adds them to nodes of the tree; each thread completes every
 * n-th block of elements. So the bits are those of one thread. All calls come from one thread, which is the first.
 */
#ifndef TRAINER_COLLECTIVE_MICRO_SHARDS_H
#define TRAINER_COLLECTIVE_MICRO_SHARDS_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/reduction_tree.h"
#include "trainer/collective/team.h"
#include "trainer/timing/phase_clock.h"

struct micro_shards;

/* For batches of the parts that the `count` nodes, which follow each other, have together; 0: without micro-shards, the
 * whole batch is a part. n, whose max_batch is the size of a part, is borrowed until free. nodes are copied.
 * ERR_NOMEM. */
int micro_shards_new(struct micro_shards **out, struct network *n, const struct tree_node *nodes, int count,
                     struct error *e);
void micro_shards_free(struct micro_shards *m); /* NULL is fine */

/* From now on the first `threads` members of the team share the parts, or as many as there are parts. Makes a network
 * for each but the first. Call it right after micro_shards_new(); needs at least one node. team is borrowed until free.
 * ERR_NOMEM, ERR_ARG, ERR_IO as network_new(): m may only be freed. */
int micro_shards_use_threads(struct micro_shards *m, struct team *team, int threads, struct error *e);

/* Where the nodes' sums go: (count) exchange vectors of the network, the last of which is its own. Needed for more than
 * one node. Borrowed until free or the next call. */
void micro_shards_set_vectors(struct micro_shards *m, real *const *vectors);

/* Tells the clock what micro_shards_train() does: forward, backward, and adding the parts (reducing). Borrowed; NULL,
 * the default: nothing is measured. */
void micro_shards_set_clock(struct micro_shards *m, struct phase_clock *clock);

/*
 * From now on the gradient of each table (variable.row_width) comes as rows, whose elements in the vectors stay 0. For
 * strategies that send or update only the rows in use. Without this call, they are part of the vectors. Does nothing
 * for a network without tables. ERR_NOMEM: m may only be freed.
 */
int micro_shards_use_rows(struct micro_shards *m, struct error *e);
/*
 * With rows: the sum of the table with this index in network_variables() in the worker's node number `node`, whose
 * other sums are in vector `node` (0 without micro-shards): of its micro-shards' rows, in the tree (row_sum.h), which
 * also adds the nodes of several workers. There when the sink is told of a `low` at or below the table's place, and
 * until the next micro_shards_train(). NULL: no such table, or rows are not used.
 */
const struct row_gradient *micro_shards_rows(const struct micro_shards *m, int node, size_t variable);

/* As network_train of the whole batch, whose size must be a multiple of the number of parts and whose samples must be
 * given. sink is called, in the calling thread, in the last part's backward pass, when the elements hold the sums of
 * each node's parts; with threads also later. The score is summed in the order of the parts; with micro-shards the loss
 * of each is rounded to 32 binary places, so that sums of them are exact, and equal for any number of workers.
 * sink->rows is not called: see above. */
int micro_shards_train(struct micro_shards *m, const struct batch *batch, uint64_t seed,
                       const struct gradient_sink *sink, struct score *score);

#endif
