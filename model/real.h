/*
 * real.h - the number type of the models: float for the programs; double with -DREAL_DOUBLE, which builds the same code
 * again so that tests can compare gradients with finite differences. ELEMENT_REAL is its name in base/batch.h.
 */
#ifndef MODEL_REAL_H
#define MODEL_REAL_H

#include <stdlib.h>
#include <string.h>

#ifdef REAL_DOUBLE
typedef double real;
#define ELEMENT_REAL ELEMENT_FLOAT64
#else
typedef float real;
#define ELEMENT_REAL ELEMENT_FLOAT32
#endif

/* count zeros, aligned to 64 bytes; also for 0. NULL without memory. Yours to free(). */
static inline real *reals_new(size_t count)
{
    const size_t bytes = (count ? count : 1) * sizeof(real);
    void *memory;

    return posix_memalign(&memory, 64, bytes) ? NULL : memset(memory, 0, bytes);
}

#endif
