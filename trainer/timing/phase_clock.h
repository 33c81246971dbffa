/*
 * phase_clock.h - what the time of a rank is spent on. The clock is always in one phase; code that begins another kind
 * of work enters its phase, and enters the earlier one again at its end:
 *
 *   const enum phase before = phase_clock_enter(clock, PHASE_REDUCING);
 *   ...
 *   phase_clock_enter(clock, before);
 *
 * A change costs one reading of the clock, and entering the current phase costs none. No time is counted twice or left
 * out: the sum of all phases is the time from start to stop, to the nanosecond. Each rank has one clock, for one
 * thread. A NULL clock is fine everywhere: nothing is measured.
 */
#ifndef TRAINER_TIMING_PHASE_CLOCK_H
#define TRAINER_TIMING_PHASE_CLOCK_H

#include "trainer/timing/span_log.h"

#include <stdint.h>

enum phase {
    PHASE_INPUT,    /* waiting for the batch */
    PHASE_FORWARD,  /* forward pass */
    PHASE_BACKWARD, /* backward pass */
    PHASE_WAITING,  /* waiting for other ranks; of a server: for workers */
    PHASE_REDUCING, /* sending and adding gradients; of a server: adding */
    PHASE_UPDATING, /* new weights: the optimizer, or storing what servers sent */
    PHASE_SAVING,   /* checkpoints, without waiting for servers */
    PHASE_OTHER,    /* log lines and points, comparing replicas, and so on; of a server: messages */
    PHASE_COUNT
};
extern const char *const phase_names[PHASE_COUNT]; /* "input", ... */

enum { PHASE_NO_BUCKET = -1 };

/* Sums. Ranks send it to each other as it is. */
struct phase_times {
    int64_t nanoseconds[PHASE_COUNT];
    int64_t steps; /* begun */
};

struct phase_clock {
    struct phase_times times;
    enum phase phase;
    int bucket;
    int64_t step;                   /* current; for spans */
    int64_t counted, begun, opened; /* nanoseconds: times go up to `counted`; when phase and step began */
    struct span_log *spans;         /* borrowed; NULL: none are kept */
};

/* Zeroes the clock and starts it in that phase, now. spans: see struct. */
void phase_clock_start(struct phase_clock *c, enum phase phase, struct span_log *spans);
/* Counts up to now. The clock can be read; entering a phase later counts the time in between to the last one. */
void phase_clock_stop(struct phase_clock *c);

/* The current phase; of NULL: any. */
enum phase phase_clock_phase(const struct phase_clock *c);
/* Returns the phase until now. */
enum phase phase_clock_enter(struct phase_clock *c, enum phase phase);
/* The same for work on one bucket of gradients. Entering a phase without a bucket ends it. */
enum phase phase_clock_enter_bucket(struct phase_clock *c, enum phase phase, int bucket);
/* A step begins (and the one before ends), in that phase. */
void phase_clock_step(struct phase_clock *c, int64_t step, enum phase phase);

/* The times up to now. */
struct phase_times phase_clock_times(struct phase_clock *c);

/* What came after `before`. */
struct phase_times phase_times_since(const struct phase_times *now, const struct phase_times *before);
void phase_times_add(struct phase_times *sum, const struct phase_times *t);
int64_t phase_times_total(const struct phase_times *t); /* nanoseconds of all phases */
/* Nanoseconds of all phases but waiting. */
int64_t phase_times_busy(const struct phase_times *t);
/* A phase's part of all the time, 0 to 1; of no time 0. */
double phase_times_share(const struct phase_times *t, enum phase phase);

#endif
