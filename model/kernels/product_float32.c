#include "model/kernels/product_float32.h"

#if PRODUCT_FLOAT32_BUILT
#include "model/kernels/blas.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdlib.h>

#define AVX512 __attribute__((target("avx512f")))
#define TILE static inline AVX512 __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum {
    LANES = 16,
    ROWS_MAX = 14,  /* of a tile, and */
    BLOCKS_MAX = 2, /* vectors of its columns: these sums leave 4 of the 32 registers to what is multiplied */
    COLUMNS = BLOCKS_MAX * LANES,
    ROWS_TOGETHER = 256,    /* add to dw before others do: what is read of them stays in the cache */
    OUTER_MOST = 32 * 1024, /* elements of dw; with more, OpenBLAS, which packs x and dy for the cache, is faster */
};

struct product_float32 {
    int inputs, outputs;
    const real *w;           /* of this step */
    int transposed_is_ready; /* 1: `transposed` is of this w */
    real *packed;            /* (outputs / 32, inputs, 32 or, for the last ones, 16) */
    real *transposed;        /* (inputs / 32, outputs, 32 or 16) */
};

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

static size_t lanes(size_t n) /* rounded up to whole vectors */
{
    return (n + LANES - 1) / LANES * LANES;
}

int product_float32_new(struct product_float32 **out, int inputs, int outputs, struct error *e)
{
    struct product_float32 *p = calloc(1, sizeof *p);

    if (!p)
        return error_memory(e, NULL, "for a matrix product");
    p->inputs = inputs;
    p->outputs = outputs;
    p->packed = reals_new((size_t)inputs * lanes((size_t)outputs));
    p->transposed = reals_new((size_t)outputs * lanes((size_t)inputs));
    if (!p->packed || !p->transposed) {
        product_float32_free(p);
        return error_memory(e, NULL, "for a matrix product");
    }
    *out = p;
    return OK;
}

void product_float32_free(struct product_float32 *p)
{
    if (!p)
        return;
    free(p->packed);
    free(p->transposed);
    free(p);
}

static size_t width_of(size_t columns, size_t first) /* of a packed panel */
{
    return lanes(at_most(columns - first, COLUMNS));
}

void product_float32_prepare(struct product_float32 *p, const real *w)
{
    const size_t inputs = (size_t)p->inputs, outputs = (size_t)p->outputs;
    real *to = p->packed;

    p->w = w;
    p->transposed_is_ready = 0;
    for (size_t first = 0; first < outputs; first += COLUMNS)
        for (size_t k = 0; k < inputs; k++, to += width_of(outputs, first))
            memcpy(to, w + k * outputs + first, at_most(outputs - first, COLUMNS) * sizeof *to);
}

/* to(c, r) = from(r, c) of one square of 4 x 4, or what there is of it */
static void transpose_square(size_t rows, size_t columns, const float *from, size_t from_row, float *to, size_t to_row)
{
    if (rows >= 4 && columns >= 4) {
        __m128 row0 = _mm_loadu_ps(from), row1 = _mm_loadu_ps(from + from_row);
        __m128 row2 = _mm_loadu_ps(from + 2 * from_row), row3 = _mm_loadu_ps(from + 3 * from_row);

        _MM_TRANSPOSE4_PS(row0, row1, row2, row3);
        _mm_storeu_ps(to, row0), _mm_storeu_ps(to + to_row, row1);
        _mm_storeu_ps(to + 2 * to_row, row2), _mm_storeu_ps(to + 3 * to_row, row3);
        return;
    }
    for (size_t c = 0; c < at_most(columns, 4); c++)
        for (size_t r = 0; r < at_most(rows, 4); r++)
            to[c * to_row + r] = from[r * from_row + c];
}

static void pack_transposed(struct product_float32 *p)
{
    const size_t inputs = (size_t)p->inputs, outputs = (size_t)p->outputs;
    real *to = p->transposed;

    for (size_t first = 0; first < inputs; first += COLUMNS) {
        const size_t count = at_most(inputs - first, COLUMNS), width = width_of(inputs, first);

        for (size_t start = 0; start < outputs; start += LANES) /* what is read for these stays in the cache */
            for (size_t c = 0; c < count; c += 4)
                for (size_t k = start; k < at_most(start + LANES, outputs); k += 4)
                    transpose_square(count - c, outputs - k, p->w + (first + c) * outputs + k, outputs,
                                     to + k * width + c, width);
        to += outputs * width;
    }
    p->transposed_is_ready = 1;
}

/* y(row, c) = or += sum over k < length of x[row * x_row + k * x_step] w[k * w_step + c], c in one or two vectors. */
struct sums {
    size_t length;
    const float *x;
    size_t x_row, x_step;
    const float *w;
    size_t w_step;
    float *y;
    size_t y_row;
    __mmask16 last; /* columns of the last vector */
};

/* rows, blocks and adds are constants where this becomes part of a kernel. adds: x_row is 1; else x_step is. */
TILE void multiply_tile(size_t rows, size_t blocks, int adds, const struct sums *s)
{
    const size_t x_row = adds ? 1 : s->x_row, x_step = adds ? s->x_step : 1;
    const float *x = s->x, *w = s->w;
    __m512 sum[ROWS_MAX][BLOCKS_MAX];

    UNROLL for (size_t i = 0; i < rows; i++) UNROLL for (size_t b = 0; b < blocks; b++) sum[i][b] = _mm512_setzero_ps();
    for (size_t k = 0; k < s->length; k++, x += x_step, w += s->w_step) {
        __m512 right[BLOCKS_MAX];

        UNROLL for (size_t b = 0; b < blocks; b++)
            right[b] = _mm512_maskz_loadu_ps(b + 1 < blocks ? 0xffff : s->last, w + b * LANES);
        UNROLL for (size_t i = 0; i < rows; i++)
        {
            const __m512 left = _mm512_set1_ps(x[i * x_row]);
            UNROLL for (size_t b = 0; b < blocks; b++) sum[i][b] = _mm512_fmadd_ps(left, right[b], sum[i][b]);
        }
    }
    UNROLL for (size_t i = 0; i < rows; i++) UNROLL for (size_t b = 0; b < blocks; b++)
    {
        const __mmask16 mask = b + 1 < blocks ? 0xffff : s->last;
        float *y = s->y + i * s->y_row + b * LANES;
        _mm512_mask_storeu_ps(y, mask, adds ? _mm512_add_ps(sum[i][b], _mm512_maskz_loadu_ps(mask, y)) : sum[i][b]);
    }
}

typedef void multiply_kernel(const struct sums *s);

#define KERNEL(rows, blocks, adds) \
    static AVX512 void multiply_##rows##_##blocks##_##adds(const struct sums *s) \
    { \
        multiply_tile(rows, blocks, adds, s); \
    }
#define KERNELS(rows) KERNEL(rows, 1, 0) KERNEL(rows, 1, 1) KERNEL(rows, 2, 0) KERNEL(rows, 2, 1)
#define KERNEL_NAMES(rows) \
    { \
        { multiply_##rows##_1_0, multiply_##rows##_1_1 }, \
        { \
            multiply_##rows##_2_0, multiply_##rows##_2_1 \
        } \
    }

KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)
KERNELS(7)
KERNELS(8)
KERNELS(9)
KERNELS(10)
KERNELS(11)
KERNELS(12)
KERNELS(13)
KERNELS(14)

static multiply_kernel *const kernels[ROWS_MAX][BLOCKS_MAX][2] = {
    KERNEL_NAMES(1),  KERNEL_NAMES(2),  KERNEL_NAMES(3),  KERNEL_NAMES(4),  KERNEL_NAMES(5),
    KERNEL_NAMES(6),  KERNEL_NAMES(7),  KERNEL_NAMES(8),  KERNEL_NAMES(9),  KERNEL_NAMES(10),
    KERNEL_NAMES(11), KERNEL_NAMES(12), KERNEL_NAMES(13), KERNEL_NAMES(14),
};

/* All rows by one panel of at most 32 columns, in tiles of nearly the same height. */
static void multiply_panel(struct sums s, size_t rows, size_t columns, int adds)
{
    const size_t tiles = (rows + ROWS_MAX - 1) / ROWS_MAX, blocks = lanes(columns) / LANES;
    const float *x = s.x;
    float *y = s.y;

    s.last = (__mmask16)(0xffffU >> (blocks * LANES - columns));
    for (size_t t = 0, row = 0, next; t < tiles; t++, row = next) {
        next = rows * (t + 1) / tiles;
        s.x = x + row * s.x_row;
        s.y = y + row * s.y_row;
        kernels[next - row - 1][blocks - 1][adds](&s);
    }
}

/* y (rows, columns) = x (rows, length) w, which is packed */
static void multiply_packed(size_t rows, size_t length, size_t columns, const real *x, const real *w, real *y)
{
    for (size_t first = 0; first < columns; first += COLUMNS) {
        const size_t width = width_of(columns, first);

        multiply_panel((struct sums){ length, x, length, 1, w, width, y + first, columns, 0 }, rows,
                       at_most(columns - first, COLUMNS), 0);
        w += length * width;
    }
}

void product_float32_forward(struct product_float32 *p, int rows, const real *x, real *y)
{
    multiply_packed((size_t)rows, (size_t)p->inputs, (size_t)p->outputs, x, p->packed, y);
}

/* dw += x^T dy */
static void add_outer(const struct product_float32 *p, size_t rows, const real *x, const real *dy, real *dw)
{
    const size_t inputs = (size_t)p->inputs, outputs = (size_t)p->outputs;

    for (size_t start = 0; start < rows; start += ROWS_TOGETHER)
        for (size_t first = 0; first < outputs; first += COLUMNS)
            multiply_panel((struct sums){ at_most(rows - start, ROWS_TOGETHER), x + start * inputs, 1, inputs,
                                          dy + start * outputs + first, outputs, dw + first, outputs, 0 },
                           inputs, at_most(outputs - first, COLUMNS), 1);
}

void product_float32_backward(struct product_float32 *p, int rows, const real *x, const real *dy, real *dw, real *dx)
{
    if (dw && (size_t)p->inputs * (size_t)p->outputs > OUTER_MOST)
        blas_product(1, 0, p->inputs, p->outputs, rows, x, dy, 1, dw);
    else if (dw)
        add_outer(p, (size_t)rows, x, dy, dw);
    if (!dx)
        return;
    if (!p->transposed_is_ready)
        pack_transposed(p);
    multiply_packed((size_t)rows, (size_t)p->outputs, (size_t)p->inputs, dy, p->transposed, dx);
}

#endif
