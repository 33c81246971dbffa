/*
 * time_watch.h - explains the time of a run while it goes on (--time): at each point of the curves what a step took of
 * each phase, and a line when a rank becomes slow, or is no longer. Curves, in milliseconds a step since the last
 * point: time/input, time/forward, ... of rank 0; and over the workers, if there are several, time_min/, time_mean/
 * and time_max/input, and so on.
 *
 * A zeroed struct does nothing.
 */
#ifndef TRAINER_TIME_WATCH_H
#define TRAINER_TIME_WATCH_H

#include "base/error.h"
#include "trainer/progress.h"
#include "trainer/strategies/strategy.h"
#include "trainer/times_exchange.h"
#include "trainer/timing/straggler.h"

#include <stdint.h>

struct time_watch {
    struct strategy *strategy; /* borrowed, as progress is; NULL: does nothing */
    struct progress *progress;
    struct times_windows windows;
    struct straggler_watch stragglers; /* rank 0 */
    int64_t every, last;               /* a window ends at each multiple of `every`; the step of the last call */
};

/* On every worker, at `step`. ERR_NOMEM, ERR_PEER. On OK yours, time_watch_close() it. */
int time_watch_open(struct time_watch *w, struct progress *p, struct strategy *s, int64_t step, int64_t every,
                    struct error *e);
/* Call after each step. ERR_PEER. */
int time_watch_step(struct time_watch *w, int64_t step, struct error *e);
/* As times_windows_close(). */
int time_watch_close(struct time_watch *w, int ended, const char *doing, struct error *e);

#endif
