#include "model/kernels/product.h"

#include "model/kernels/bfloat16.h"
#include "model/kernels/bfloat16_avx512.h"
#include "model/kernels/blas.h"
#include "model/kernels/convolution.h"
#include "model/kernels/product_avx512.h"
#include "model/kernels/product_float32.h"
#if CONVOLUTION_ONEDNN
#include "model/kernels/product_onednn.h"
#endif

#include <stdlib.h>

enum {
    BFLOAT16_LEAST = 32, /* inputs and outputs */
    CALLS_LEAST = 8,     /* for which packing takes less time than it saves */
};

struct product {
    int inputs, outputs;
    const real *w;
    struct product_onednn *rounded; /* all NULL: by OpenBLAS */
    struct product_avx512 *pairs;
    struct product_float32 *packed;
};

int product_new(struct product **out, int rows, int calls, int inputs, int outputs, int bfloat16, struct error *e)
{
    struct product *p = calloc(1, sizeof *p);
    int rc = OK;

    if (!p)
        return error_memory(e, NULL, "for a matrix product");
    p->inputs = inputs;
    p->outputs = outputs;
    bfloat16 = bfloat16 && inputs >= BFLOAT16_LEAST && outputs >= BFLOAT16_LEAST;
#if BFLOAT16_AVX512_BUILT
    if (bfloat16 && bfloat16_units() == BFLOAT16_AVX512)
        rc = product_avx512_new(&p->pairs, rows, inputs, outputs, e);
#endif
#if CONVOLUTION_ONEDNN
    if (bfloat16 && bfloat16_units() == BFLOAT16_AMX)
        rc = product_onednn_new(&p->rounded, rows, inputs, outputs, e);
#endif
#if PRODUCT_FLOAT32_BUILT
    if (!p->rounded && !p->pairs && rc == OK && calls >= CALLS_LEAST && blas_kernels_are_avx512())
        rc = product_float32_new(&p->packed, inputs, outputs, e);
#endif
    (void)rows, (void)calls, (void)bfloat16;
    if (rc < 0)
        product_free(p);
    else
        *out = p;
    return rc;
}

void product_free(struct product *p)
{
    if (!p)
        return;
#if CONVOLUTION_ONEDNN
    product_onednn_free(p->rounded);
#endif
#if BFLOAT16_AVX512_BUILT
    product_avx512_free(p->pairs);
#endif
#if PRODUCT_FLOAT32_BUILT
    product_float32_free(p->packed);
#endif
    free(p);
}

int product_takes_any_rows(const struct product *p)
{
    return p->packed != NULL;
}

void product_prepare(struct product *p, const real *w)
{
    p->w = w;
#if CONVOLUTION_ONEDNN
    if (p->rounded)
        product_onednn_prepare(p->rounded, w);
#endif
#if BFLOAT16_AVX512_BUILT
    if (p->pairs)
        product_avx512_prepare(p->pairs, w);
#endif
#if PRODUCT_FLOAT32_BUILT
    if (p->packed)
        product_float32_prepare(p->packed, w);
#endif
}

void product_forward(struct product *p, int rows, const real *x, real *y)
{
#if CONVOLUTION_ONEDNN
    if (p->rounded && product_onednn_forward(p->rounded, rows, x, y))
        return;
#endif
#if BFLOAT16_AVX512_BUILT
    if (p->pairs) {
        product_avx512_forward(p->pairs, rows, x, y);
        return;
    }
#endif
#if PRODUCT_FLOAT32_BUILT
    if (p->packed) {
        product_float32_forward(p->packed, rows, x, y);
        return;
    }
#endif
    blas_product(0, 0, rows, p->outputs, p->inputs, x, p->w, 0, y);
}

void product_backward(struct product *p, int rows, const real *x, const real *dy, real *dw, real *dx)
{
#if CONVOLUTION_ONEDNN
    if (p->rounded && product_onednn_backward(p->rounded, rows, x, dy, dw, dx))
        return;
#endif
#if BFLOAT16_AVX512_BUILT
    if (p->pairs) {
        product_avx512_backward(p->pairs, rows, x, dy, dw, dx);
        return;
    }
#endif
#if PRODUCT_FLOAT32_BUILT
    if (p->packed) {
        product_float32_backward(p->packed, rows, x, dy, dw, dx);
        return;
    }
#endif
    if (dw)
        blas_product(1, 0, p->inputs, p->outputs, rows, x, dy, 1, dw);
    if (dx)
        blas_product(0, 1, rows, p->inputs, p->outputs, dy, p->w, 0, dx);
}
