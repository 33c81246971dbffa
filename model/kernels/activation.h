/*
 * activation.h - bias and ReLU, ReLU alone, adding, and leaky ReLU. Planes are (pixels, block) reals, channel
 * fastest; per-channel arrays have `block` entries.
 */
#ifndef MODEL_KERNELS_ACTIVATION_H
#define MODEL_KERNELS_ACTIVATION_H

#include "model/real.h"

#include <stddef.h>

/* x = x + bias, and with relu max(x + bias, 0), in place. A NaN stays. */
void activation_bias_forward(size_t pixels, size_t block, const real *bias, int relu, real *x);

/* gradient holds dy on entry, dx on return: with relu dy where y > 0, else 0 (y is what the forward call left).
 * sum += column sums of dx. */
void activation_bias_backward(size_t pixels, size_t block, int relu, const real *y, real *gradient, double *sum);

/* x = max(x, 0) over n reals. A NaN stays. */
void activation_relu_forward(size_t n, real *x);
/* gradient holds dy on entry, dx on return: dy where y > 0, else 0. */
void activation_relu_backward(size_t n, const real *y, real *gradient);

/* Leaky ReLU over n reals, z may be x. leaky_rule is the gradient at 0. */
enum leaky_rule {
    LEAKY_ONE_AT_ZERO,   /* where(x < 0, slope x, x): 1 at 0 */
    LEAKY_SLOPE_AT_ZERO, /* tf.nn.leaky_relu: slope at 0 */
};
void activation_leaky_forward(size_t n, const real *x, real slope, real *z);
/* gradient holds dz on entry, dx on return. */
void activation_leaky_backward(size_t n, const real *x, real slope, enum leaky_rule rule, real *gradient);

/* y += x over n reals. */
void activation_add(size_t n, const real *x, real *y);

#endif
