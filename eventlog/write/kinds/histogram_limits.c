#include "eventlog/write/kinds/histogram_limits.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { HALF = 1 << 15, INFINITE = 0x7ff0 };

static struct histogram_limits made;

/* Buckets of doubles from `smallest` on, which must not fall from call to call; *bucket is that of the last call. */
static uint16_t step_to(double smallest, size_t *bucket)
{
    while (*bucket < HISTOGRAM_LIMITS - 1 && made.limits[*bucket] <= smallest)
        ++*bucket;
    return (uint16_t)*bucket;
}

static void make(void)
{
    size_t bucket = 0;
    double p = 1e-12;

    made.limits[0] = -DBL_MAX;
    made.limits[HISTOGRAM_POSITIVE + 1] = 0;
    made.limits[HISTOGRAM_LIMITS - 1] = DBL_MAX;
    for (size_t i = 1; i <= HISTOGRAM_POSITIVE; i++, p *= 1.1) {
        made.limits[HISTOGRAM_POSITIVE + 1 + i] = p;
        made.limits[HISTOGRAM_POSITIVE + 1 - i] = -p;
    }
    memcpy(made.next, made.limits, sizeof made.next);
    made.next[HISTOGRAM_LIMITS - 1] = INFINITY;
    /* In the order of the numbers: from -DBL_MAX, whose lower bits are all 1, to -0; then from 0. */
    for (uint64_t i = INFINITE; i-- > 0;)
        made.first[HALF + i] = step_to(bits_double((HALF + i) << 48 | UINT64_MAX >> 16), &bucket);
    for (uint64_t i = 0; i < INFINITE; i++)
        made.first[i] = step_to(bits_double(i << 48), &bucket);
}

const struct histogram_limits *histogram_limits(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make);
    return &made;
}
