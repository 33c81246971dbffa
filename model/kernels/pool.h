/*
 * pool.h - maximum and average pooling of one plane. A plane is (height, width, block) reals, channel fastest; out is
 * (out_height, out_width, block). The part of a window outside the plane counts neither for the maximum nor for
 * the mean.
 */
#ifndef MODEL_KERNELS_POOL_H
#define MODEL_KERNELS_POOL_H

#include "model/real.h"
#include "model/window.h"

#include <stdint.h>

enum { POOL_MAX_WINDOW = 255 }; /* pixels of a maximum's window: an index in it is a byte, and one value means none */

struct pool_shape {
    int height, width, block, out_height, out_width;
    struct window window; /* with explicit padding */
};

/* y is the largest pixel, winner its index in the window, row width + column, the first in row-major order. NaN is
 * ignored; a window with nothing above -infinity gives the lowest finite number, as in TensorFlow. */
void pool_max_forward(const struct pool_shape *s, const real *x, real *y, uint8_t *winner);
/* The same y alone, for where there is no backward pass. */
void pool_max_infer(const struct pool_shape *s, const real *x, real *y);
/* dx is cleared, then each dy is added at its winner; overlapping windows add up. */
void pool_max_backward(const struct pool_shape *s, const real *dy, const uint8_t *winner, real *dx);

void pool_average_forward(const struct pool_shape *s, const real *x, real *y);
void pool_average_backward(const struct pool_shape *s, const real *dy, real *dx); /* dx is overwritten */

#endif
