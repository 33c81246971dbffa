/*
 * product.h - the matrix products of a layer whose input of `rows` rows is multiplied by a variable, forward and
 * backward, by OpenBLAS, or where it is faster by AVX-512 (product_float32.h); or by oneDNN or AVX-512 with operands
 * rounded to bfloat16 and sums in float32. Row-major, no padding:
 *   x, dx (rows, inputs)  w, dw (inputs, outputs)  y, dy (rows, outputs)
 *   y = x w;  dx = dy w^T;  dw += x^T dy
 * A product belongs to one thread at a time. Only _new can fail.
 */
#ifndef MODEL_KERNELS_PRODUCT_H
#define MODEL_KERNELS_PRODUCT_H

#include "base/error.h"
#include "model/real.h"

struct product;

/* rows: the maximum per call. calls: how many a step makes, or could, with the same variable, such as the steps of a
 * sequence: with many, packing the variable pays. bfloat16 1: with it, unless a row is so short that rounding takes
 * longer than it saves, as that of 10 logits. OpenBLAS, and for bfloat16 oneDNN, are loaded. Yours to free. */
int product_new(struct product **out, int rows, int calls, int inputs, int outputs, int bfloat16, struct error *e);
void product_free(struct product *p); /* NULL is fine */

/* 1: calls may have any number of rows, and take no longer in parts. */
int product_takes_any_rows(const struct product *p);

/* Takes the variable of this step; borrowed until the next. */
void product_prepare(struct product *p, const real *w);

void product_forward(struct product *p, int rows, const real *x, real *y); /* y is overwritten */
/* dw is added to, dx overwritten, in this order, so that dx may be x; each may be NULL. */
void product_backward(struct product *p, int rows, const real *x, const real *dy, real *dw, real *dx);

#endif
