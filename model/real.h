/*
 * real.h - the number type of the models: float for the programs; double where -DREAL_DOUBLE builds the same code a
 * second time, so that gradients can be held to finite differences.
 */
#ifndef MODEL_REAL_H
#define MODEL_REAL_H

#ifdef REAL_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif
