/*
 * batch_norm.h - batch normalisation followed by a leaky ReLU, in steps that each read their data once.
 *
 * A kernel works on one plane: (pixels, block) reals, channel fastest. Per-channel arrays have `block` entries.
 *   x^ = (x - mean) / sqrt(variance + epsilon),  y = gamma x^ + beta,  z = y if y >= 0, else slope y; with slope 0, a
 * ReLU, the gradient at y = 0 is 0, else 1
 * Sums over a plane are computed in reals and added to doubles, so large batches lose no precision.
 */
#ifndef MODEL_KERNELS_BATCH_NORM_H
#define MODEL_KERNELS_BATCH_NORM_H

#include "model/real.h"

#include <stddef.h>

/* sum += sum of (x - shift), square += sum of (x - shift)^2. A shift near the mean keeps the difference
 * square/n - (sum/n)^2 from cancelling. */
void batch_norm_sums(size_t pixels, size_t block, const real *x, const real *shift, double *sum, double *square);

/* z = leaky(scale x + offset), with scale = gamma / sqrt(variance + epsilon), offset = beta - scale mean. slope 1
 * leaves the activation out. z may be x. */
void batch_norm_apply(size_t pixels, size_t block, const real *x, const real *scale, const real *offset, real slope,
                      real *z);

/* Backward, first half. gradient holds dz on entry and dy on return: dy = dz if y >= 0, else slope dz, with y from x,
 * scale and offset as above. sum += sum of dy, product += sum of dy (x - mean). */
void batch_norm_reduce(size_t pixels, size_t block, const real *x, const real *scale, const real *offset, real slope,
                       const real *mean, real *gradient, double *sum, double *product);

/* Backward, second half: dx = scale dy + slope_x x + constant, or dx += that with add. From
 * dx = scale (dy - mean(dy) - x^ mean(dy x^)), whose terms other than dy are linear in x. */
void batch_norm_backward(size_t pixels, size_t block, const real *x, const real *dy, const real *scale,
                         const real *slope_x, const real *constant, int add, real *dx);

#endif
