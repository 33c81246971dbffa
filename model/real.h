/*
 * real.h - the number type of the models: float for the programs; double with -DREAL_DOUBLE, which builds the same code
 * again so that tests can compare gradients with finite differences. ELEMENT_REAL is its name in base/batch.h.
 */
#ifndef MODEL_REAL_H
#define MODEL_REAL_H

#ifdef REAL_DOUBLE
typedef double real;
#define ELEMENT_REAL ELEMENT_FLOAT64
#else
typedef float real;
#define ELEMENT_REAL ELEMENT_FLOAT32
#endif

#endif
