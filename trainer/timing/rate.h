/*
 * rate.h - the speed of a training and its remaining time, from the steps of the last ten seconds, or from the last
 * step if that took longer. Pure; times are monotonic seconds.
 */
#ifndef TRAINER_TIMING_RATE_H
#define TRAINER_TIMING_RATE_H

#include <stdint.h>

struct rate {
    int64_t step, from; /* the newest finished step; the one at which the current ten seconds began */
    double at, from_at; /* when they ended */
    double before;      /* steps per second in the previous ten seconds; 0: none */
};

/* The training starts at this step, now. */
void rate_start(struct rate *r, int64_t step, double now);
/* A step has ended. */
void rate_step(struct rate *r, int64_t step, double now);
/* Steps per second; 0 until a step has ended. */
double rate_per_second(const struct rate *r);
/* Seconds until max_steps at that rate; infinity if there is no rate yet. */
double rate_left(const struct rate *r, int64_t max_steps, double now);

#endif
