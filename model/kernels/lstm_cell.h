/*
 * lstm_cell.h - one step of a long short-term memory for one sample, and its gradient; layers/lstm.c has the formula.
 * The same bits with every instruction set. Pure.
 */
#ifndef MODEL_KERNELS_LSTM_CELL_H
#define MODEL_KERNELS_LSTM_CELL_H

#include "model/real.h"

#include <stddef.h>

/* gates (4 units): x times its rows of the kernel, in the order i, j, f, o; on return after their functions. recurrent
 * (4 units): h times its rows, or NULL where gates has it. bias (4 units), c (units) before the step; next (units): c
 * after it, bent (units): its tanh, h (units): what the step gives. next may be c. */
void lstm_cell(size_t units, double forget, const real *bias, const real *recurrent, real *gates, const real *c,
               real *next, real *bent, real *h);

/* gates, bent: as lstm_cell() left them; on return gates has the gradient of what went into their functions. before: c
 * before the step; h: the gradient of its h; c: of the c after it, on return of the one before. */
void lstm_cell_gradient(size_t units, real *gates, const real *before, const real *bent, const real *h, real *c);

#endif
