/*
 * product_onednn.h - the products of product.h with x, w and dy rounded to bfloat16, by oneDNN. Only where the build
 * found it, and once it is loaded.
 */
#ifndef MODEL_KERNELS_PRODUCT_ONEDNN_H
#define MODEL_KERNELS_PRODUCT_ONEDNN_H

#include "base/error.h"
#include "model/real.h"

struct product_onednn;

/* As product_new(), and so on. The processor has units for bfloat16 (bfloat16.h). */
int product_onednn_new(struct product_onednn **out, int rows, int inputs, int outputs, struct error *e);
void product_onednn_free(struct product_onednn *p);
void product_onednn_prepare(struct product_onednn *p, const real *w);
/* 1; 0: there is no memory for another number of rows than before, and nothing was computed. */
int product_onednn_forward(struct product_onednn *p, int rows, const real *x, real *y);
int product_onednn_backward(struct product_onednn *p, int rows, const real *x, const real *dy, real *dw, real *dx);

#endif
