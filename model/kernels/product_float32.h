/*
 * product_float32.h - the products of product.h in float32 by AVX-512, for a variable by which a step multiplies many
 * times, with few rows each: it is packed once a step, where OpenBLAS packs it, and the rows, in every call. Sums stay
 * in registers. Each is made in the order of its index, so the bits of a row of y or dx depend on neither the number
 * of rows nor its place among them; that of dw is made for 256 rows at a time, and for a larger variable by OpenBLAS.
 * Only where the build has PRODUCT_FLOAT32_BUILT and the processor the instructions: blas_kernels_are_avx512().
 */
#ifndef MODEL_KERNELS_PRODUCT_FLOAT32_H
#define MODEL_KERNELS_PRODUCT_FLOAT32_H

#include "base/error.h"
#include "model/real.h"

/* 1 if the build has the functions below. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(REAL_DOUBLE)
#define PRODUCT_FLOAT32_BUILT 1
#else
#define PRODUCT_FLOAT32_BUILT 0
#endif

struct product_float32;

/* As product_new(), and so on, for any number of rows. */
int product_float32_new(struct product_float32 **out, int inputs, int outputs, struct error *e);
void product_float32_free(struct product_float32 *p);
void product_float32_prepare(struct product_float32 *p, const real *w);
void product_float32_forward(struct product_float32 *p, int rows, const real *x, real *y);
void product_float32_backward(struct product_float32 *p, int rows, const real *x, const real *dy, real *dw, real *dx);

#endif
