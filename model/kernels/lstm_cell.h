/*
 * lstm_cell.h - one step of a long short-term memory for one sample; layers/lstm.c has the formula. Pure.
 */
#ifndef MODEL_KERNELS_LSTM_CELL_H
#define MODEL_KERNELS_LSTM_CELL_H

#include "model/real.h"

#include <stddef.h>

/* gates (4 units): [x, h] times the kernel, in the order i, j, f, o; on return after their functions. bias (4 units),
 * c (units) before the step; next (units): c after it, bent (units): its tanh, h (units): what the step gives. */
void lstm_cell(size_t units, double forget, const real *bias, real *gates, const real *c, real *next, real *bent,
               real *h);

#endif
