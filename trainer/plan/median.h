/* median.h - the middle of measured values. Pure. */
#ifndef TRAINER_PLAN_MEDIAN_H
#define TRAINER_PLAN_MEDIAN_H

#include <stddef.h>

/* Sorts the values, the least first, and returns the middle one, or the mean of the two; of none: 0. */
double median(double *values, size_t count);

#endif
