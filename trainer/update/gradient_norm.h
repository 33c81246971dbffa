/*
 * gradient_norm.h - the sum of the squares of many values, for the norm of a gradient: the same bits wherever and in
 * whatever pieces it is computed, since every addition has its place in a fixed tree (specification of the strategies,
 * 9.1 rule 9). Values are squared and added in double. Each whole block of GRADIENT_NORM_BLOCK values, and the rest, is
 * added pairwise; so are the blocks' sums:
 *   of n values, the largest power of two below n on the left, the others on the right, and each part in the same way.
 *
 * Pure; the error is about log2(n) roundings in double, whatever n is.
 */
#ifndef TRAINER_UPDATE_GRADIENT_NORM_H
#define TRAINER_UPDATE_GRADIENT_NORM_H

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

/* The sum of all squares so far; 0 of none. */
double gradient_norm_squares(const struct gradient_norm *g);

/* By what a gradient of this norm is multiplied so that its norm is at most `limit`: limit / max(limit, norm), as
 * TensorFlow's clip_by_global_norm. */
double gradient_norm_factor(double norm, double limit);

#endif
