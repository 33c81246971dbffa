#include "model/kernels/dense.h"

#include "model/kernels/blas.h"

void dense_forward(int rows, int inputs, int outputs, const real *x, const real *w, real *y)
{
    blas_product(0, 0, rows, outputs, inputs, x, w, 0, y);
}

void dense_backward_data(int rows, int inputs, int outputs, const real *dy, const real *w, real *dx)
{
    blas_product(0, 1, rows, inputs, outputs, dy, w, 0, dx);
}

void dense_backward_weights(int rows, int inputs, int outputs, const real *x, const real *dy, real *dw)
{
    blas_product(1, 0, inputs, outputs, rows, x, dy, 1, dw);
}
