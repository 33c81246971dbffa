/*
 * dense.h - the dense layer as matrix products. Row-major, no padding; no two arguments overlap.
 * convolution_blas.load() comes first.
 *   x (rows, inputs)  w (inputs, outputs)  y, dy (rows, outputs)
 */
#ifndef MODEL_KERNELS_DENSE_H
#define MODEL_KERNELS_DENSE_H

#include "model/real.h"

/* y = x w;  dx = dy w^T;  dw += x^T dy */
void dense_forward(int rows, int inputs, int outputs, const real *x, const real *w, real *y);
void dense_backward_data(int rows, int inputs, int outputs, const real *dy, const real *w, real *dx);
void dense_backward_weights(int rows, int inputs, int outputs, const real *x, const real *dy, real *dw);

#endif
