/*
 * product_avx512.h - the products of product.h with x, w and dy rounded to bfloat16, by AVX512-BF16. Only where the
 * build has BFLOAT16_AVX512_BUILT and the processor the instructions.
 */
#ifndef MODEL_KERNELS_PRODUCT_AVX512_H
#define MODEL_KERNELS_PRODUCT_AVX512_H

#include "base/error.h"
#include "model/real.h"

struct product_avx512;

/* As product_new(), and so on. */
int product_avx512_new(struct product_avx512 **out, int rows, int inputs, int outputs, struct error *e);
void product_avx512_free(struct product_avx512 *p);
void product_avx512_prepare(struct product_avx512 *p, const real *w);
void product_avx512_forward(struct product_avx512 *p, int rows, const real *x, real *y);
void product_avx512_backward(struct product_avx512 *p, int rows, const real *x, const real *dy, real *dw, real *dx);

#endif
