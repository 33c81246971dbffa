/*
 * lrn.h - local response normalisation across channels.
 *   y_c = x_c N_c^-beta,  N_c = bias + alpha sum of x_d^2 over |d - c| <= radius (cut at the first and last channel)
 * A pixel's channels are in blocks `step` reals apart, `block` neighbours each: channel c is at (c / block) step + c %
 * block from the pixel's first, and pixels are `block` reals apart.
 */
#ifndef MODEL_KERNELS_LRN_H
#define MODEL_KERNELS_LRN_H

#include "model/real.h"

#include <stddef.h>

enum { LRN_CHANNELS_MAX = 1024, LRN_RADIUS_MAX = 64 };

struct lrn_shape {
    size_t pixels, channels, block, step; /* channels at most LRN_CHANNELS_MAX, a multiple of block */
    int radius;
    real bias, alpha, beta;
};

void lrn_forward(const struct lrn_shape *s, const real *x, real *y);
/* dx_c = g_c N_c^-beta - 2 alpha beta x_c sum over |d - c| <= radius of g_d x_d N_d^(-beta-1). dx may be dy. */
void lrn_backward(const struct lrn_shape *s, const real *x, const real *dy, real *dx);

#endif
