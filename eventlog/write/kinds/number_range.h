/*
 * number_range.h - the smallest and the largest of finite numbers, found block by block by vector code. Pure; any
 * number of threads.
 */
#ifndef EVENTLOG_WRITE_KINDS_NUMBER_RANGE_H
#define EVENTLOG_WRITE_KINDS_NUMBER_RANGE_H

#include <stddef.h>

enum { NUMBER_RANGE_LANES = 8 };

/* of the values so far, in lanes that vector code takes side by side */
struct number_range {
    double min[NUMBER_RANGE_LANES], max[NUMBER_RANGE_LANES];
};

void number_range_begin(struct number_range *r);

/* 1 if all values are finite. By their bits, so that nothing traps, whatever the caller has asked the processor for. */
int number_range_finite(const double *values, size_t n);

/* Takes in n finite values. */
void number_range_extend(struct number_range *r, const double *values, size_t n);

/* Without a value: DBL_MAX and -DBL_MAX. 0 and -0 count as equal: either may be the result. */
void number_range_end(const struct number_range *r, double *min, double *max);

#endif
