#include "model/kernels/product_avx512.h"

#include "model/kernels/bfloat16_avx512.h"

#if BFLOAT16_AVX512_BUILT
#include <stdlib.h>

struct product_avx512 {
    int inputs, outputs;
    const real *w;           /* of this step */
    int transposed_is_ready; /* 1: `transposed` is of this w */
    uint16_t *left;          /* (rows, inputs or outputs): x or dy */
    uint32_t *x_pairs;       /* (rows / 2, inputs) of two rows */
    uint32_t *dy_pairs;      /* (rows / 2, outputs in whole vectors) */
    uint32_t *packed, *transposed;
};

int product_avx512_new(struct product_avx512 **out, int rows, int inputs, int outputs, struct error *e)
{
    struct product_avx512 *p = calloc(1, sizeof *p);
    const size_t pairs = bfloat16_pairs((size_t)rows);

    if (!p)
        return error_memory(e, NULL, "for a matrix product");
    p->inputs = inputs;
    p->outputs = outputs;
    p->left = bfloat16_avx512_new((size_t)rows * (size_t)(inputs > outputs ? inputs : outputs), sizeof *p->left);
    p->x_pairs = bfloat16_avx512_new(pairs * (size_t)inputs, sizeof *p->x_pairs);
    p->dy_pairs = bfloat16_avx512_new(pairs * bfloat16_lanes((size_t)outputs), sizeof *p->dy_pairs);
    p->packed = bfloat16_avx512_new(bfloat16_avx512_packed(1, inputs, outputs), sizeof *p->packed);
    p->transposed = bfloat16_avx512_new(bfloat16_avx512_packed(1, outputs, inputs), sizeof *p->transposed);
    if (!p->left || !p->x_pairs || !p->dy_pairs || !p->packed || !p->transposed) {
        product_avx512_free(p);
        return error_memory(e, NULL, "for a matrix product");
    }
    *out = p;
    return OK;
}

void product_avx512_free(struct product_avx512 *p)
{
    if (!p)
        return;
    free(p->left);
    free(p->x_pairs);
    free(p->dy_pairs);
    free(p->packed);
    free(p->transposed);
    free(p);
}

void product_avx512_prepare(struct product_avx512 *p, const real *w)
{
    p->w = w;
    p->transposed_is_ready = 0;
    bfloat16_avx512_pack(0, 1, p->inputs, p->outputs, w, p->packed);
}

/* y (rows, outputs) = left (rows, length) w */
static void avx512_product(struct product_avx512 *p, int rows, int length, int outputs, const real *left,
                           const uint32_t *w, real *y)
{
    static const ptrdiff_t start = 0;

    bfloat16_avx512_round((size_t)rows * (size_t)length, left, p->left);
    bfloat16_avx512_multiply(&(struct bfloat16_product){
        .lines = 1,
        .rows = rows,
        .outputs = outputs,
        .x = p->left,
        .x_row = (size_t)length,
        .runs = &start,
        .run_count = 1,
        .length = length,
        .w = w,
        .y = y,
        .y_row = (size_t)outputs,
        .y_block = BFLOAT16_LANES,
    });
}

void product_avx512_forward(struct product_avx512 *p, int rows, const real *x, real *y)
{
    avx512_product(p, rows, p->inputs, p->outputs, x, p->packed, y);
}

static void pair_rows(int rows, size_t width, const real *from, uint32_t *to, size_t step)
{
    for (size_t n = 0; n < (size_t)rows; n += 2, to += step)
        bfloat16_avx512_pair(width, from + n * width, n + 1 < (size_t)rows ? from + (n + 1) * width : NULL, to);
}

void product_avx512_backward(struct product_avx512 *p, int rows, const real *x, const real *dy, real *dw, real *dx)
{
    const size_t inputs = (size_t)p->inputs, outputs = (size_t)p->outputs;

    if (dw) {
        pair_rows(rows, inputs, x, p->x_pairs, inputs);
        pair_rows(rows, outputs, dy, p->dy_pairs, bfloat16_lanes(outputs));
        bfloat16_avx512_add_outer(&(struct bfloat16_outer){
            .lines = 1,
            .pairs = (int)bfloat16_pairs((size_t)rows),
            .rows = p->inputs,
            .outputs = p->outputs,
            .x = p->x_pairs,
            .x_step = inputs,
            .dy = p->dy_pairs,
            .sum = dw,
        });
    }
    if (dx) {
        if (!p->transposed_is_ready)
            bfloat16_avx512_pack_transposed(0, 1, p->outputs, p->inputs, p->w, p->transposed);
        p->transposed_is_ready = 1;
        avx512_product(p, rows, p->outputs, p->inputs, dy, p->transposed, dx);
    }
}

#endif
