/*
 * node_training.h - computes the gradients of a batch's micro-shards one by one, in one thread, and adds them to nodes
 * of the tree (reduction_tree.h): one vector for each node. micro_shards.h is made of these, one for each thread.
 */
#ifndef TRAINER_COLLECTIVE_NODE_TRAINING_H
#define TRAINER_COLLECTIVE_NODE_TRAINING_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/reduction_tree.h"
#include "trainer/timing/phase_clock.h"

struct node_training;

/* For batches of the parts that the `count` nodes, which follow each other, have together; 0: without micro-shards, the
 * whole batch is a part. n, whose max_batch is the size of a part, is borrowed until free. nodes are copied.
 * ERR_NOMEM. */
int node_training_new(struct node_training **out, struct network *n, const struct tree_node *nodes, int count,
                      struct error *e);
void node_training_free(struct node_training *m); /* NULL is fine */

/* Where the nodes' sums go: (count) exchange vectors of the network, the last of which is its own. Needed for more than
 * one node. Borrowed until free or the next call. */
void node_training_set_vectors(struct node_training *m, real *const *vectors);

/* Tells the clock what node_training_run() does: forward, backward, and adding the parts (reducing). Borrowed; NULL,
 * the default: nothing is measured. */
void node_training_set_clock(struct node_training *m, struct phase_clock *clock);

/*
 * From now on the gradient of each table (variable.row_width) comes as rows, whose elements in the vectors stay 0. For
 * strategies that send or update only the rows in use. Without this call, they are part of the vectors. Does nothing
 * for a network without tables. ERR_NOMEM: m may only be freed.
 */
int node_training_use_rows(struct node_training *m, struct error *e);
/*
 * With rows: the sum of the table with this index in network_variables() in the worker's node number `node`, whose
 * other sums are in vector `node` (0 without micro-shards): of its micro-shards' rows, in the tree (row_sum.h), which
 * also adds the nodes of several workers. There when the sink is told of a `low` at or below the table's place, and
 * until the next node_training_run(). NULL: no such table, or rows are not used.
 */
const struct row_gradient *node_training_rows(const struct node_training *m, int node, size_t variable);

/* As network_train of the whole batch, whose size must be a multiple of the number of parts and whose samples must be
 * given. sink is called in the last part's backward pass, when the elements hold the sums of each node's parts. The
 * score is summed in the order of the parts; with micro-shards the loss of each is rounded to 32 binary places, so that
 * sums of them are exact, and equal for any number of workers. sink->rows is not called: see above. */
int node_training_run(struct node_training *m, const struct batch *batch, uint64_t seed,
                      const struct gradient_sink *sink, struct score *score);

#endif
