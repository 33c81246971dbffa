/*
 * addition.h - adds vectors of reals element by element, as fast as memory allows. An element's sum has the same bits
 * wherever it is in the vectors and whatever code adds it. Pure functions.
 */
#ifndef TRAINER_COLLECTIVE_ADDITION_H
#define TRAINER_COLLECTIVE_ADDITION_H

#include "model/real.h"

#include <stddef.h>

/* out[i] = a[i] + b[i] for i in [0, count). out may be a or b; otherwise they must not overlap. */
void addition_both(real *out, const real *a, const real *b, size_t count);

#endif
