#include "model/kernels/winograd_product.h"

#if BFLOAT16_AVX512_BUILT
#include <immintrin.h>

/* Only products of pairs use the last one's instructions. */
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define INLINE static inline AVX512 __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum {
    LANES = 16,
    ROWS = WINOGRAD_PRODUCT_ROWS,
    VECTORS = WINOGRAD_PRODUCT_COLUMNS / LANES,
    HIGH = ROWS * VECTORS, /* rows of one vector: as many sums stay in registers as of ROWS by VECTORS */
};

INLINE void multiply_part(int rounded, int rows, int vectors, const struct winograd_product *p, size_t point,
                          size_t row, size_t output)
{
    const float *x = p->x + point * p->x_point + row / 16 * p->x_block + row % 16 * p->x_row;
    const float *w = p->w + point * p->w_point + output * p->w_length;
    const size_t x_row = p->x_row, x_step = p->x_step, w_row = (size_t)vectors * LANES;
    float *y = p->y + point * p->y_point + row * p->y_row + output;
    __m512 sum[HIGH][VECTORS];
    const float *left_rows[HIGH / 4]; /* each fourth: the others are x_row, 2 and 3 times x_row further */

    UNROLL for (int i = 0; i < rows / 4; i++)
    {
        left_rows[i] = x + (size_t)i * 4 * x_row;
        __asm__("" : "+r"(left_rows[i])); /* or the compiler computes the address of each row, for each k */
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
        sum[r][v] = p->add ? _mm512_load_ps(y + (size_t)r * p->y_row + v * LANES) : _mm512_setzero_ps();
    for (int k = 0; k < p->length; k++, w += w_row) {
        __m512 right[VECTORS];

        UNROLL for (int v = 0; v < vectors; v++) right[v] = _mm512_load_ps(w + v * LANES);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const __m512 left = _mm512_set1_ps(left_rows[r / 4][(size_t)(r % 4) * x_row]);

            UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = rounded ? _mm512_dpbf16_ps(sum[r][v], (__m512bh)left, (__m512bh)right[v])
                                    : _mm512_fmadd_ps(left, right[v], sum[r][v]);
        }
        UNROLL for (int i = 0; i < rows / 4; i++) left_rows[i] += x_step;
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
        _mm512_store_ps(y + (size_t)r * p->y_row + v * LANES, sum[r][v]);
}

INLINE void multiply_all(int rounded, const struct winograd_product *p)
{
    const int together = p->outputs / (VECTORS * LANES) * (VECTORS * LANES), high = p->rows / HIGH * HIGH;

    for (size_t point = 0; point < (size_t)p->points; point++) {
        for (int o = 0; o < together; o += VECTORS * LANES)
            for (int row = 0; row < p->rows; row += ROWS)
                multiply_part(rounded, ROWS, VECTORS, p, point, (size_t)row, (size_t)o);
        if (together == p->outputs)
            continue;
        for (int row = 0; row < high; row += HIGH)
            multiply_part(rounded, HIGH, 1, p, point, (size_t)row, (size_t)together);
        if (high < p->rows)
            multiply_part(rounded, ROWS, 1, p, point, (size_t)high, (size_t)together);
    }
}

AVX512 void winograd_multiply(const struct winograd_product *p)
{
    if (p->rounded)
        multiply_all(1, p);
    else
        multiply_all(0, p);
}

#endif
