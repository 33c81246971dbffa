#include "model/kernels/bfloat16_avx512.h"

#if BFLOAT16_AVX512_BUILT
#include "base/vector.h"

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define TILE static inline AVX512 __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

/* The accumulators of a tile stay in registers, of which there are 32. */
enum { ROWS_MAX = 16, BLOCKS_MAX = 2 };

void *bfloat16_avx512_new(size_t count, size_t size)
{
    const size_t bytes = (count + BFLOAT16_SLACK) * size;
    void *memory;

    return posix_memalign(&memory, 64, bytes) ? NULL : memset(memory, 0, bytes);
}

TILE __mmask16 mask_of(size_t left)
{
    return (__mmask16)(left >= BFLOAT16_LANES ? 0xffff : (1u << left) - 1);
}

TILE __m512i rounded(__mmask16 mask, const float *from) /* each in the lower half of 32 bits */
{
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from)));
}

TILE __m512i pair_of(__mmask16 mask, const float *a, const float *b)
{
    const __m512i low = a ? rounded(mask, a) : _mm512_setzero_si512();

    return b ? _mm512_or_si512(low, _mm512_slli_epi32(rounded(mask, b), 16)) : low;
}

AVX512 void bfloat16_avx512_round(size_t n, const float *from, uint16_t *to)
{
    size_t k = 0;

    for (; k + BFLOAT16_LANES <= n; k += BFLOAT16_LANES)
        _mm256_storeu_si256((__m256i *)(void *)(to + k), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from + k)));
    if (k < n) {
        const __mmask16 mask = mask_of(n - k);
        _mm256_mask_storeu_epi16(to + k, mask, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + k)));
    }
}

AVX512 void bfloat16_avx512_round_pixels(size_t pixels, size_t channels, size_t block, size_t plane, const float *from,
                                         uint16_t *to)
{
    if (block == channels) {
        bfloat16_avx512_round(pixels * channels, from, to);
        return;
    }
    for (size_t c = 0; c < channels; c += block, from += plane)
        for (size_t p = 0; p < pixels; p++)
            bfloat16_avx512_round(block, from + p * block, to + p * channels + c);
}

AVX512 void bfloat16_avx512_pair(size_t n, const float *a, const float *b, uint32_t *to)
{
    for (size_t k = 0; k < n; k += BFLOAT16_LANES)
        _mm512_storeu_si512(to + k, pair_of(mask_of(n - k), a ? a + k : NULL, b ? b + k : NULL));
}

/* ---- x w --------------------------------------------------------------------------------------------------------- */

/* Two vectors of outputs are multiplied together, the last one alone if their number is odd: w is packed
 * (outputs / 32, runs, pairs, 2 or 1, 16). */
static size_t packed_place(int runs, int length, int outputs, int block, int run)
{
    const size_t pairs = bfloat16_pairs((size_t)length), blocks = bfloat16_lanes((size_t)outputs) / BFLOAT16_LANES;
    const size_t group = (size_t)block / BLOCKS_MAX * BLOCKS_MAX, width = blocks - group < 2 ? 1 : 2;

    return ((group * (size_t)runs + (size_t)run * width) * pairs + (size_t)block % BLOCKS_MAX) * BFLOAT16_LANES;
}

static size_t packed_step(int outputs, int block)
{
    const size_t blocks = bfloat16_lanes((size_t)outputs) / BFLOAT16_LANES;

    return blocks - (size_t)block / BLOCKS_MAX * BLOCKS_MAX < 2 ? BFLOAT16_LANES : BLOCKS_MAX * BFLOAT16_LANES;
}

size_t bfloat16_avx512_packed(int runs, int length, int outputs)
{
    return (size_t)runs * bfloat16_pairs((size_t)length) * bfloat16_lanes((size_t)outputs);
}

AVX512 void bfloat16_avx512_pack(int run, int runs, int length, int outputs, const float *w, uint32_t *packed)
{
    const size_t n = (size_t)length, width = (size_t)outputs;

    for (int block = 0; block * BFLOAT16_LANES < outputs; block++) {
        const size_t first = (size_t)block * BFLOAT16_LANES, step = packed_step(outputs, block);
        uint32_t *to = packed + packed_place(runs, length, outputs, block, run);

        for (size_t k = 0; k < n; k += 2, to += step)
            _mm512_storeu_si512(to, pair_of(mask_of(width - first), w + k * width + first,
                                            k + 1 < n ? w + (k + 1) * width + first : NULL));
    }
}

AVX512 void bfloat16_avx512_pack_transposed(int run, int runs, int length, int outputs, const float *w,
                                            uint32_t *packed)
{
    const size_t n = (size_t)length;
    uint16_t part[BFLOAT16_LANES][2 * BFLOAT16_LANES];

    for (int block = 0; block * BFLOAT16_LANES < outputs; block++) {
        const int first = block * BFLOAT16_LANES;
        const size_t step = packed_step(outputs, block);
        uint32_t *to = packed + packed_place(runs, length, outputs, block, run);

        memset(part, 0, sizeof part);
        for (size_t k = 0; k < n; k += 2 * BFLOAT16_LANES) {
            const size_t count = n - k < 2 * BFLOAT16_LANES ? n - k : 2 * BFLOAT16_LANES;

            if (count & 1) /* its last pair is half of an earlier part */
                memset(part, 0, sizeof part);
            for (int lane = 0; lane < BFLOAT16_LANES && first + lane < outputs; lane++)
                bfloat16_avx512_round(count, w + (size_t)(first + lane) * n + k, part[lane]);
            for (size_t pair = 0; pair < bfloat16_pairs(count); pair++, to += step)
                for (int lane = 0; lane < BFLOAT16_LANES; lane++)
                    memcpy(&to[lane], &part[lane][2 * pair], sizeof *to);
        }
    }
}

/* `rows` and `blocks` are constants where this becomes part of a kernel. */
TILE void multiply_tile(int rows, int blocks, const struct bfloat16_product *p, const uint16_t *x, const uint32_t *w,
                        float *y, size_t outputs)
{
    const size_t pairs = bfloat16_pairs((size_t)p->length), x_row = p->x_row;
    __m512 sums[ROWS_MAX][BLOCKS_MAX];

    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int b = 0; b < blocks; b++) sums[i][b] = _mm512_setzero_ps();
    for (int run = 0; run < p->run_count; run++) {
        const uint16_t *at = x + p->runs[run];

        for (size_t k = 0; k < pairs; k++, at += 2, w += blocks * BFLOAT16_LANES) {
            __m512bh right[BLOCKS_MAX];

            UNROLL for (int b = 0; b < blocks; b++) right[b] = (__m512bh)_mm512_loadu_si512(w + b * BFLOAT16_LANES);
            UNROLL for (int i = 0; i < rows; i++)
            {
                int pair;

                memcpy(&pair, at + (size_t)i * x_row, sizeof pair);
                const __m512bh left = (__m512bh)_mm512_set1_epi32(pair);
                UNROLL for (int b = 0; b < blocks; b++) sums[i][b] = _mm512_dpbf16_ps(sums[i][b], right[b], left);
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int b = 0; b < blocks; b++) _mm512_mask_storeu_ps(
        y + (size_t)i * p->y_row + (size_t)b * p->y_block, mask_of(outputs - (size_t)b * 16), sums[i][b]);
}

typedef void multiply_kernel(const struct bfloat16_product *p, const uint16_t *x, const uint32_t *w, float *y,
                             size_t outputs);

#define MULTIPLY(rows, blocks) \
    static AVX512 void multiply_##rows##_##blocks(const struct bfloat16_product *p, const uint16_t *x, \
                                                  const uint32_t *w, float *y, size_t outputs) \
    { \
        multiply_tile(rows, blocks, p, x, w, y, outputs); \
    }
#define MULTIPLY_BOTH(rows) \
    MULTIPLY(rows, 1) \
    MULTIPLY(rows, 2)

MULTIPLY_BOTH(1)
MULTIPLY_BOTH(2)
MULTIPLY_BOTH(4)
MULTIPLY_BOTH(7)
MULTIPLY_BOTH(8)
MULTIPLY_BOTH(12)
MULTIPLY_BOTH(14)
MULTIPLY(16, 1)

static const struct {
    int rows;
    multiply_kernel *kernels[BLOCKS_MAX];
} tiles[] = {
    { 1, { multiply_1_1, multiply_1_2 } },    { 2, { multiply_2_1, multiply_2_2 } },
    { 4, { multiply_4_1, multiply_4_2 } },    { 7, { multiply_7_1, multiply_7_2 } },
    { 8, { multiply_8_1, multiply_8_2 } },    { 12, { multiply_12_1, multiply_12_2 } },
    { 14, { multiply_14_1, multiply_14_2 } }, { 16, { multiply_16_1, NULL } },
};

/* The tile that computes `rows` rows in the shortest time: the last one overlaps the one before, and what is done
 * beside multiplying counts like one row more. */
static size_t best_tile(int rows, int blocks)
{
    size_t best = 0;
    int least = 0;

    for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
        const int cost = (rows + tiles[t].rows - 1) / tiles[t].rows * (tiles[t].rows + 1);

        if (tiles[t].rows <= rows && tiles[t].kernels[blocks - 1] && (t == 0 || cost <= least)) {
            best = t;
            least = cost;
        }
    }
    return best;
}

void bfloat16_avx512_multiply(const struct bfloat16_product *p)
{
    const int block_count = (int)(bfloat16_lanes((size_t)p->outputs) / BFLOAT16_LANES);

    for (int block = 0; block < block_count; block += BLOCKS_MAX) {
        const int blocks = block_count - block < BLOCKS_MAX ? 1 : BLOCKS_MAX;
        const size_t tile = best_tile(p->rows, blocks), first = (size_t)block * BFLOAT16_LANES;
        const int rows = tiles[tile].rows;
        const uint32_t *w = p->w + packed_place(p->run_count, p->length, p->outputs, block, 0);

        for (int line = 0; line < p->lines; line++)
            for (int row = 0; row < p->rows; row += rows) {
                const size_t at = (size_t)(row + rows > p->rows ? p->rows - rows : row);

                tiles[tile].kernels[blocks - 1](p, p->x + (size_t)line * p->x_line + at * p->x_row, w,
                                                p->y + (size_t)line * p->y_line + at * p->y_row +
                                                    (size_t)block * p->y_block,
                                                (size_t)p->outputs - first);
            }
    }
}

/* ---- x^T dy ------------------------------------------------------------------------------------------------------ */

TILE void outer_tile(int rows, const struct bfloat16_outer *p, const uint32_t *x, const uint32_t *dy, float *sum,
                     size_t left, size_t outputs)
{
    const size_t width = bfloat16_lanes((size_t)p->outputs), stride = (size_t)p->outputs, step = p->x_step;
    __m512 sums[ROWS_MAX];

    UNROLL for (int i = 0; i < rows; i++) sums[i] = _mm512_setzero_ps();
    for (int line = 0; line < p->lines; line++) {
        const uint32_t *at = x + (size_t)line * p->x_line;

        for (int k = 0; k < p->pairs; k++, at += step, dy += width) {
            const __m512bh right = (__m512bh)_mm512_loadu_si512(dy);

            UNROLL for (int i = 0; i < rows; i++)
                sums[i] = _mm512_dpbf16_ps(sums[i], right, (__m512bh)_mm512_set1_epi32((int)at[i]));
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        float *to = sum + (size_t)i * stride;
        const __mmask16 mask = (size_t)i < left ? mask_of(outputs) : 0;

        _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(sums[i], _mm512_maskz_loadu_ps(mask, to)));
    }
}

#define OUTER(rows) \
    static AVX512 void outer_##rows(const struct bfloat16_outer *p, const uint32_t *x, const uint32_t *dy, float *sum, \
                                    size_t left, size_t outputs) \
    { \
        outer_tile(rows, p, x, dy, sum, left, outputs); \
    }
OUTER(4)
OUTER(8)
OUTER(16)

void bfloat16_avx512_add_outer(const struct bfloat16_outer *p)
{
    for (size_t first = 0; first < (size_t)p->outputs; first += BFLOAT16_LANES)
        for (size_t row = 0, rows; row < (size_t)p->rows; row += rows) {
            const size_t left = (size_t)p->rows - row, outputs = (size_t)p->outputs - first;
            float *sum = p->sum + row * (size_t)p->outputs + first;

            rows = left > 8 ? 16 : left > 4 ? 8 : 4;
            (rows == 16 ? outer_16 : rows == 8 ? outer_8 : outer_4)(p, p->x + row, p->dy + first, sum, left, outputs);
        }
}

#endif
