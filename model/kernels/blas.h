/*
 * blas.h - the matrix product of the BLAS library in the number type of the build.
 */
#ifndef MODEL_KERNELS_BLAS_H
#define MODEL_KERNELS_BLAS_H

#include "base/error.h"
#include "model/real.h"

/* Loads the library, which then computes in the calling thread; must come before any product. May be repeated. */
int blas_load(struct error *e);

/* The processor for which the library's kernels were written: "Cooperlake". Static. Once it is loaded. */
const char *blas_kernels(void);

/* 1: they are for AVX-512, as the processor is. Kernels of our own that take their place go by this, so that whoever
 * chooses others by OPENBLAS_CORETYPE, to get the same bits everywhere, chooses for them, too. */
int blas_kernels_are_avx512(void);

/* c (rows, columns) = a b + beta c; a is (rows, inner), or (inner, rows) with transpose_a; b is (inner, columns), or
 * (columns, inner) with transpose_b. Row-major without padding. */
void blas_product(int transpose_a, int transpose_b, int rows, int columns, int inner, const real *a, const real *b,
                  real beta, real *c);

#endif
