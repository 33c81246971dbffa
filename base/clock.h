/* clock.h - time. Seconds as double keep microseconds until the year 2106 and beyond. Thread-safe. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

double clock_wall(void);      /* seconds since 1970 UTC; can be set back by the administrator */
double clock_monotonic(void); /* seconds since an arbitrary start; never goes back: for durations and deadlines */
double clock_monotonic_coarse(void); /* the same, but up to 10 ms old (the kernel's last tick); cheaper */
int64_t clock_nanoseconds(void);     /* as clock_monotonic(), whole nanoseconds, whose differences add up exactly */

#endif
