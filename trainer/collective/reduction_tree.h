/*
 * reduction_tree.h - the fixed binary tree in which the gradients of a step's micro-shards are added, so that the sum
 * has the same bits whoever adds which part of it.
 *
 * Micro-shards 0 .. S - 1 are the leaves; a node of `count` leaves is the sum of its left child, the largest power of
 * two below `count` of them, and its right child, the rest. So the tree of a power of two is complete, and a node's own
 * tree depends on its count alone. The root is the gradient. Source: strategies, "Bitwise reproducible reduction".
 *
 *   S = 8, 3 workers              0 1 2 3 4 5 6 7
 *   worker 0 owns leaves [0, 2):  0+1
 *   worker 1 owns [2, 5):             2+3 4
 *   worker 2 owns [5, 8):                   5 6+7
 *
 * A worker adds its leaves to the nodes that are whole within its part, and hands on one vector for each. Whoever has
 * all vectors of a node, here of the root, completes it: ((0+1) + (2+3)) + ((4 + 5) + (6+7)). Only which operands meet
 * decides about the bits, not which of them is left: addition is commutative. Pure functions.
 */
#ifndef TRAINER_COLLECTIVE_REDUCTION_TREE_H
#define TRAINER_COLLECTIVE_REDUCTION_TREE_H

#include "model/real.h"

#include <stddef.h>

struct tree_node {
    int first, count; /* the sum of leaves [first, first + count); count >= 1 */
};

enum { REDUCTION_TREE_NODES_MAX = 60 /* of any part of a tree with at most 2^30 leaves */ };

/* The first leaf of worker r of n, 0 <= r <= n; its part ends where the next one's begins: floor(r * leaves / n). */
int reduction_tree_first(int leaves, int n, int r);

/* The largest nodes of the tree that are whole within leaves [from, to), ascending; together they are that part. out:
 * REDUCTION_TREE_NODES_MAX, or NULL to count. Returns how many: 0 if from == to. */
int reduction_tree_nodes(int leaves, int from, int to, struct tree_node *out);

/* How many leaves the left child of a node of `count` leaves has; count >= 2. */
int reduction_tree_left(int count);

/*
 * out[i] = the node that nodes[0] to nodes[count - 1] together are, whose elements are parts[0][i], parts[1][i] and so
 * on, for i in [from, to). The nodes ascend and follow each other; each must be a node of the tree of their sum, as
 * those of reduction_tree_nodes are for the whole tree or for a node of it. parts and out must not overlap, except that
 * out may be parts[0].
 */
void reduction_tree_sum(real *out, const real *const *parts, const struct tree_node *nodes, int count, size_t from,
                        size_t to);

#endif
