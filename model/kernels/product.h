/*
 * product.h - the matrix products of a layer whose input of `rows` rows is multiplied by a variable, forward and
 * backward, by OpenBLAS; or by oneDNN with operands rounded to bfloat16 and sums in float32. Row-major, no padding:
 *   x, dx (rows, inputs)  w, dw (inputs, outputs)  y, dy (rows, outputs)
 *   y = x w;  dx = dy w^T;  dw += x^T dy
 * A product belongs to one thread at a time. Only _new can fail.
 */
#ifndef MODEL_KERNELS_PRODUCT_H
#define MODEL_KERNELS_PRODUCT_H

#include "base/error.h"
#include "model/real.h"

struct product;

/* rows: the maximum per call. bfloat16 1: with it, unless a row is so short that rounding takes longer than it saves,
 * as that of 10 logits. OpenBLAS, and for bfloat16 oneDNN, are loaded. Yours to free. */
int product_new(struct product **out, int rows, int inputs, int outputs, int bfloat16, struct error *e);
void product_free(struct product *p); /* NULL is fine */

/* Takes the variable of this step; borrowed until the next. */
void product_prepare(struct product *p, const real *w);

void product_forward(struct product *p, int rows, const real *x, real *y); /* y is overwritten */
/* dw is added to, dx overwritten, in this order, so that dx may be x; each may be NULL. */
void product_backward(struct product *p, int rows, const real *x, const real *dy, real *dw, real *dx);

#endif
