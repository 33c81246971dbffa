/*
 * curve.h - speeds from the points that a training wrote: (step, time) of each log line. Pure.
 */
#ifndef TRAINER_COMPARE_CURVE_H
#define TRAINER_COMPARE_CURVE_H

#include <stddef.h>
#include <stdint.h>

struct curve_point {
    int64_t step;
    double time; /* seconds since any start */
};

/* Steps a second from the second point to the last: what came before the second, the first interval of the log, has
 * caches to fill and memory to get. With only two points between these. 0: not known. */
double curve_speed(const struct curve_point *points, size_t count);

/* Steps a second from step `from` to step `to`, straight between points. 0: the points do not reach so far. */
double curve_speed_between(const struct curve_point *points, size_t count, int64_t from, int64_t to);

struct evaluation {
    int64_t step;
    double seconds; /* from the start of the training to the checkpoint */
    double precision;
};

/* The last evaluation up to this step and up to this time; both count. NULL: there is none. Steps rise. */
const struct evaluation *curve_evaluation(const struct evaluation *e, size_t count, int64_t step, double seconds);

#endif
