/*
 * gradient_norm.h - the sum of the squares of many values, for the norm of a gradient: the same bits wherever and in
 * whatever pieces it is computed, since every addition has its place in a fixed tree (specification of the strategies,
 * 9.1 rule 9). Values are squared and added in double. Each whole block of GRADIENT_NORM_BLOCK values, and the rest, is
 * added pairwise; so are the blocks' sums:
 *   of n values, the largest power of two below n on the left, the others on the right, and each part in the same way.
 *
 * Pure; the error is about log2(n) roundings in double, whatever n is.
 *
 * Of a gradient each of several holders, such as parameter servers, may have some parts. Each adds up the squares of
 * its parts, to one sum for every node of a variable's tree that is whole within a part; whoever has the sums of all
 * holders gets the norm, with the bits of one that has the whole gradient. So few doubles travel: at most about
 * 2 log2(n) of a part of n values.
 */
#ifndef TRAINER_OPTIMIZERS_GRADIENT_NORM_H
#define TRAINER_OPTIMIZERS_GRADIENT_NORM_H

#include "base/error.h"
#include "model/network.h"
#include "model/real.h"

#include <stddef.h>
#include <stdint.h>

enum { GRADIENT_NORM_BLOCK = 4096 };

/* Zeroed: no values yet. */
struct gradient_norm {
    double sums[64]; /* [k]: of 2^k blocks, if bit k of `blocks` is set */
    uint64_t blocks;
};

/* Adds the next block: GRADIENT_NORM_BLOCK values, or fewer if it is the last one. */
void gradient_norm_add(struct gradient_norm *g, const real *values, size_t count);

/* Adds a whole block, or the last one, of zeros, which takes no time. */
void gradient_norm_add_zeros(struct gradient_norm *g);

/* The sum of all squares so far; 0 of none. */
double gradient_norm_squares(const struct gradient_norm *g);

/* By what a gradient of this norm is multiplied so that its norm is at most `limit`: limit / max(limit, norm), as
 * TensorFlow's clip_by_global_norm. */
double gradient_norm_factor(double norm, double limit);

/*
 * Who holds only a part of the values can add up nodes of the tree: those of 2^k values from a multiple of 2^k on, of
 * which the last of each k may have fewer. gradient_norm_add() over the values of a node gives its sum.
 */
struct gradient_norm_node {
    size_t from, to; /* values [from, to) */
};

/* The fewest nodes of the tree of `count` values that together are [from, to), ascending. Returns how many, at most
 * GRADIENT_NORM_NODES. nodes NULL: only that. */
enum { GRADIENT_NORM_NODES = 128 };
size_t gradient_norm_nodes(size_t count, size_t from, size_t to, struct gradient_norm_node *nodes);

/* A tree whose nodes are added in ascending order. Zeroed: none yet. */
struct gradient_norm_tree {
    struct gradient_norm_node nodes[66];
    double sums[66];
    size_t depth;
};
/* Adds the next node of the tree of `count` values, and its sum. */
void gradient_norm_join(struct gradient_norm_tree *t, size_t count, struct gradient_norm_node node, double sum);
/* The sum of the whole tree, once all nodes are added. */
double gradient_norm_whole(const struct gradient_norm_tree *t);

/* Elements [from, to) of the exchange vector, of one variable. */
struct gradient_part {
    size_t from, to;
    int holder;
    size_t variable;  /* index in network_variables() */
    size_t at, count; /* which of its holder's sums are of this part */
};

struct gradient_parts {
    const struct network *network; /* borrowed */
    struct gradient_part *parts;   /* ascending; together all weights */
    size_t count;
    size_t *sums; /* (holders) how many each has */
    int holders;
};

/* held: `count` parts that have from, to and holder, in any order; each may have several variables, and elements that
 * are no weights, which are left out. Together they have all weights, each once. ERR_NOMEM. On OK
 * gradient_parts_release() it. */
int gradient_parts_init(struct gradient_parts *out, const struct network *n, const struct gradient_part *held,
                        size_t count, int holders, struct error *e);
void gradient_parts_release(struct gradient_parts *p); /* zeroed is fine */

/* sums: (holders) those of each. */
double gradient_parts_norm(const struct gradient_parts *p, const double *const *sums);

#endif
