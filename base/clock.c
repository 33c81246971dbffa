#include "base/clock.h"

#include <time.h>

static double seconds(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double clock_wall(void)
{
    return seconds(CLOCK_REALTIME);
}

double clock_monotonic(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double clock_monotonic_coarse(void)
{
    return seconds(CLOCK_MONOTONIC_COARSE);
}

int64_t clock_nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
