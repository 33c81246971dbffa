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
    VECTORS = WINOGRAD_PRODUCT_COLUMNS / LANES, /* sums that stay in registers */
};

INLINE void multiply_part(int rounded, int vectors, const struct winograd_product *p, size_t point, size_t row,
                          size_t output)
{
    const float *x = p->x + point * p->x_point + row / 16 * p->x_block + row % 16 * p->x_row;
    const float *w = p->w + point * p->w_point + output * p->w_length;
    const size_t x_row = p->x_row, x_step = p->x_step, w_row = (size_t)vectors * LANES;
    float *y = p->y + point * p->y_point + row * p->y_row + output;
    __m512 sum[ROWS][VECTORS];

    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < vectors; v++)
        sum[r][v] = p->add ? _mm512_load_ps(y + (size_t)r * p->y_row + v * LANES) : _mm512_setzero_ps();
    for (int k = 0; k < p->length; k++, x += x_step, w += w_row) {
        __m512 right[VECTORS];

        UNROLL for (int v = 0; v < vectors; v++) right[v] = _mm512_load_ps(w + v * LANES);
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            const __m512 left = _mm512_set1_ps(x[(size_t)r * x_row]);

            UNROLL for (int v = 0; v < vectors; v++)
                sum[r][v] = rounded ? _mm512_dpbf16_ps(sum[r][v], (__m512bh)left, (__m512bh)right[v])
                                    : _mm512_fmadd_ps(left, right[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < vectors; v++)
        _mm512_store_ps(y + (size_t)r * p->y_row + v * LANES, sum[r][v]);
}

INLINE void multiply_all(int rounded, const struct winograd_product *p)
{
    const int together = p->outputs / (VECTORS * LANES) * (VECTORS * LANES);

    for (size_t point = 0; point < (size_t)p->points; point++) {
        for (int o = 0; o < together; o += VECTORS * LANES)
            for (int row = 0; row < p->rows; row += ROWS)
                multiply_part(rounded, VECTORS, p, point, (size_t)row, (size_t)o);
        for (int row = 0; together < p->outputs && row < p->rows; row += ROWS)
            multiply_part(rounded, 1, p, point, (size_t)row, (size_t)together);
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
