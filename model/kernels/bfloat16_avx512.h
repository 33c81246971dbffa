/*
 * bfloat16_avx512.h - matrix products of bfloat16 by AVX512-BF16's VDPBF16PS, which multiplies 16 pairs of numbers by
 * 16 others and adds each pair of products to one of 16 sums in float32. All that convolutions and dense layers need of
 * it.
 *
 * A pair is two numbers that are multiplied by two others and added: 32 bits, the first in the lower 16. Whatever is
 * summed over is cut into pairs, the last one filled with 0. The order of a sum depends on the shapes alone.
 * Numbers below the normal ones are taken for 0, by the processor itself.
 */
#ifndef MODEL_KERNELS_BFLOAT16_AVX512_H
#define MODEL_KERNELS_BFLOAT16_AVX512_H

#include "model/real.h"

#include <stddef.h>
#include <stdint.h>

/* 1 if the build has the functions below; the processor must have them, too: bfloat16_units(). */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(REAL_DOUBLE)
#define BFLOAT16_AVX512_BUILT 1
#else
#define BFLOAT16_AVX512_BUILT 0
#endif

enum {
    BFLOAT16_LANES = 16,
    BFLOAT16_SLACK = 64, /* elements after the last of an array that is read in pairs and vectors: there, and finite */
};

static inline size_t bfloat16_pairs(size_t n)
{
    return (n + 1) / 2;
}

static inline size_t bfloat16_lanes(size_t n) /* rounded up to whole vectors */
{
    return (n + BFLOAT16_LANES - 1) / BFLOAT16_LANES * BFLOAT16_LANES;
}

/* count elements of `size` bytes and BFLOAT16_SLACK more, all 0, aligned to 64 bytes. NULL without memory. Yours to
 * free(). */
void *bfloat16_avx512_new(size_t count, size_t size);

/* Rounds n numbers, to nearest, ties to even. */
void bfloat16_avx512_round(size_t n, const float *from, uint16_t *to);

/* Rounds pixels that follow each other in an image (channels / block, pixels of the image, block), whose blocks are
 * `plane` reals apart, to (pixels, channels). */
void bfloat16_avx512_round_pixels(size_t pixels, size_t channels, size_t block, size_t plane, const float *from,
                                  uint16_t *to);

/* to[k] = the pair (a[k], b[k]), k < n; a or b NULL: zeros. Writes whole vectors: to has bfloat16_lanes(n) elements. */
void bfloat16_avx512_pair(size_t n, const float *a, const float *b, uint32_t *to);

/*
 * y(line, row, o) = sum over run, k of x(line, row, runs[run] + k) w(run, k, o)
 * with x(line, row, at) = x[line * x_line + row * x_row + at] and
 * y(line, row, o) = y[line * y_line + row * y_row + o / 16 * y_block + o % 16].
 * k goes over `length` numbers, beside each other. No runs: y = 0.
 */
struct bfloat16_product {
    int lines, rows, outputs;
    const uint16_t *x;
    size_t x_line, x_row;
    const ptrdiff_t *runs;
    int run_count, length;
    const uint32_t *w; /* packed */
    float *y;
    size_t y_line, y_row, y_block;
};

void bfloat16_avx512_multiply(const struct bfloat16_product *p);

/* Pairs in a packed w. */
size_t bfloat16_avx512_packed(int runs, int length, int outputs);
/* Packs run `run` of `runs`: w (length, outputs), or transposed (outputs, length); row-major without padding. */
void bfloat16_avx512_pack(int run, int runs, int length, int outputs, const float *w, uint32_t *packed);
void bfloat16_avx512_pack_transposed(int run, int runs, int length, int outputs, const float *w, uint32_t *packed);

/*
 * sum(m, o) += sum over line, k of x(line, k, m) dy(line, k, o), of pairs
 * with x(line, k, m) = x[line * x_line + k * x_step + m], dy (lines, pairs, bfloat16_lanes(outputs)) and
 * sum (rows, outputs), both without padding. One sum is made and then added.
 */
struct bfloat16_outer {
    int lines, pairs, rows, outputs;
    const uint32_t *x;
    size_t x_line, x_step;
    const uint32_t *dy;
    float *sum;
};

void bfloat16_avx512_add_outer(const struct bfloat16_outer *p);

#endif
