/*
 * rate.h - how fast a training goes, and how long it has to go: by the steps of the last ten seconds, or by the last
 * step where that took longer. Pure; times are monotonic seconds.
 */
#ifndef TRAINER_RATE_H
#define TRAINER_RATE_H

#include <stdint.h>

struct rate {
    int64_t step, from; /* the newest step that has ended; the one with which the present ten seconds began */
    double at, from_at; /* when they ended */
    double before;      /* steps a second of the ten seconds before, 0: there were none */
};

/* The training goes on from this step, now. */
void rate_start(struct rate *r, int64_t step, double now);
/* A step has ended. */
void rate_step(struct rate *r, int64_t step, double now);
/* Steps a second; 0 while no step has ended. */
double rate_per_second(const struct rate *r);
/* Seconds until max_steps at that rate; infinity while there is none. */
double rate_left(const struct rate *r, int64_t max_steps, double now);

#endif
