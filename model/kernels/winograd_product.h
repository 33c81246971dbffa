/*
 * winograd_product.h - the products of Winograd's algorithm (convolution_winograd.c), in AVX-512: at each point the
 * channels of some tiles by those of the window.
 */
#ifndef MODEL_KERNELS_WINOGRAD_PRODUCT_H
#define MODEL_KERNELS_WINOGRAD_PRODUCT_H

#include "model/kernels/bfloat16_avx512.h"

#if BFLOAT16_AVX512_BUILT
#include <stddef.h>

enum { WINOGRAD_PRODUCT_ROWS = 8 };

/*
 * At each point, from which x_point, w_point and y_point elements lead to the next:
 * y(row, o) = sum over k of x[row * x_row + k * x_step] w(k, o), added to what is there if `add`.
 * w and y have w_row and y_row elements a row; rows and outputs are multiples of WINOGRAD_PRODUCT_ROWS and 16, and each
 * 16 outputs are aligned to 64 bytes. Each sum goes on in the order of k.
 * rounded: each x and w is a pair of bfloat16 (bfloat16_avx512.h), and its product the sum of two; only on processors
 * with AVX512-BF16.
 */
struct winograd_product {
    int points, rows, outputs, length, add, rounded;
    const float *x, *w;
    float *y;
    size_t x_row, x_step, w_row, y_row;
    size_t x_point, w_point, y_point;
};

void winograd_multiply(const struct winograd_product *p);
#endif

#endif
