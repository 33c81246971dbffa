/*
 * winograd_product.h - the products of Winograd's algorithm (convolution_winograd.c), in AVX-512: at each point the
 * channels of some tiles by those of the window.
 */
#ifndef MODEL_KERNELS_WINOGRAD_PRODUCT_H
#define MODEL_KERNELS_WINOGRAD_PRODUCT_H

#include "model/kernels/bfloat16_avx512.h"

#if BFLOAT16_AVX512_BUILT
#include <stddef.h>

enum {
    WINOGRAD_PRODUCT_ROWS = 8,
    WINOGRAD_PRODUCT_COLUMNS = 32, /* of w that are together */
};

/*
 * At each point, from which x_point, w_point and y_point elements lead to the next:
 * y(row, o) = sum over k of x(row, k) w(k, o), added to what is there if `add`
 * with x(row, k) = x[row / 16 * x_block + row % 16 * x_row + k * x_step] and y(row, o) = y[row * y_row + o].
 * w is packed: its columns 32 together and the last 16, if so many are left, for themselves, (w_length, 32 or 16) each:
 * winograd_packed(). A matrix whose rows are a power of two apart would fall out of the cache.
 * rows and outputs are multiples of WINOGRAD_PRODUCT_ROWS and 16, and each 16 outputs are aligned to 64 bytes. Each sum
 * goes on in the order of k.
 * rounded: each x and w is a pair of bfloat16 (bfloat16_avx512.h), and its product the sum of two; only on processors
 * with AVX512-BF16.
 */
struct winograd_product {
    int points, rows, outputs, length, add, rounded;
    const float *x, *w;
    float *y;
    size_t x_row, x_step, x_block, w_length, y_row;
    size_t x_point, w_point, y_point;
};

void winograd_multiply(const struct winograd_product *p);

/* The place of row k of the 16 columns from `first`, a multiple of 16, of a w with so many rows and columns. */
static inline size_t winograd_packed(size_t length, size_t outputs, size_t k, size_t first)
{
    const size_t group = first / WINOGRAD_PRODUCT_COLUMNS * WINOGRAD_PRODUCT_COLUMNS;
    const size_t width = outputs - group < WINOGRAD_PRODUCT_COLUMNS ? outputs - group : WINOGRAD_PRODUCT_COLUMNS;

    return group * length + k * width + first - group;
}
#endif

#endif
