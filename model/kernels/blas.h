/*
 * blas.h - the matrix product of the BLAS library in the number type of the build. For .c files of this folder.
 */
#ifndef MODEL_KERNELS_BLAS_H
#define MODEL_KERNELS_BLAS_H

#include "model/real.h"

#include <cblas.h>

/* c (rows, columns) = a b + beta c; a is (rows, inner), or (inner, rows) with transpose_a; b is (inner, columns), or
 * (columns, inner) with transpose_b. Row-major without padding. */
static inline void blas_product(int transpose_a, int transpose_b, int rows, int columns, int inner, const real *a,
                                const real *b, real beta, real *c)
{
    const enum CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans;
    const enum CBLAS_TRANSPOSE tb = transpose_b ? CblasTrans : CblasNoTrans;
    const int lda = transpose_a ? rows : inner, ldb = transpose_b ? inner : columns;

#ifdef REAL_DOUBLE
    cblas_dgemm(CblasRowMajor, ta, tb, rows, columns, inner, 1, a, lda, b, ldb, beta, c, columns);
#else
    cblas_sgemm(CblasRowMajor, ta, tb, rows, columns, inner, 1, a, lda, b, ldb, beta, c, columns);
#endif
}

#endif
