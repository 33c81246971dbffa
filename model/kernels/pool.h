/*
 * pool.h - maximum and average pooling of one plane. A plane is (height, width, block) reals, channel fastest; out is
 * (out_height, out_width, block). What of a window lies outside the plane does not count, neither in the maximum nor in
 * the mean.
 */
#ifndef MODEL_KERNELS_POOL_H
#define MODEL_KERNELS_POOL_H

#include "model/real.h"
#include "model/window.h"

#include <stdint.h>

enum { POOL_MAX_WINDOW = 255 }; /* pixels of a maximum's window: a place in it is a byte, and one byte says nobody */

struct pool_shape {
    int height, width, block, out_height, out_width;
    struct window window; /* with explicit padding */
};

/* y is the largest pixel, winner its place in the window, row width + column, of the first one in row-major order.
 * NaN is passed over; a window with nothing above -infinity gives the lowest finite number, as TensorFlow does. */
void pool_max_forward(const struct pool_shape *s, const real *x, real *y, uint8_t *winner);
/* dx, cleared first, gets each dy at its winner; windows that overlap add. */
void pool_max_backward(const struct pool_shape *s, const real *dy, const uint8_t *winner, real *dx);

void pool_average_forward(const struct pool_shape *s, const real *x, real *y);
void pool_average_backward(const struct pool_shape *s, const real *dy, real *dx); /* dx is overwritten */

#endif
