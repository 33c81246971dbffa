#include "model/kernels/dense.h"

#include "model/kernels/blas.h"

#include <string.h>

void dense_single_thread(void)
{
    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
}

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

void dense_flatten(size_t pixels, size_t channels, size_t block, const real *image, real *flat)
{
    for (size_t b = 0; b < channels / block; b++)
        for (size_t p = 0; p < pixels; p++)
            memcpy(flat + p * channels + b * block, image + (b * pixels + p) * block, block * sizeof *flat);
}

void dense_unflatten(size_t pixels, size_t channels, size_t block, const real *flat, real *image)
{
    for (size_t b = 0; b < channels / block; b++)
        for (size_t p = 0; p < pixels; p++)
            memcpy(image + (b * pixels + p) * block, flat + p * channels + b * block, block * sizeof *flat);
}
