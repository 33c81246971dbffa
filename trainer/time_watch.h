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
#include "trainer/collective/world.h"
#include "trainer/progress.h"
#include "trainer/strategies/strategy.h"
#include "trainer/timing/phase_clock.h"
#include "trainer/timing/straggler.h"
#include "trainer/timing/time_report.h"

#include <stdint.h>

/* ---- times exchange ---------------------------------------------------------------------------------------------- */

/*
 * Brings what the ranks' time was spent on to rank 0: all of it at the end of a run, and, while it
 * runs, what the workers spent since the last point of the curves. One thread.
 */

/* Collective. The first `workers` ranks are workers. `doing`: what a late rank should do. On OK times_release() it;
 * places are borrowed from the world. */
int times_gather(struct rank_times *out, struct world *w, const struct phase_clock *clock, int workers, int synchronous,
                 const char *doing, struct error *e);
void times_release(struct rank_times *t); /* may be zeroed */

/* Sent by a worker; last: no more will come. */
struct times_window {
    struct phase_times times;
    int64_t last;
};

/*
 * Windows of time, all workers': each sends rank 0 a message when a window ends, and nobody waits. If a message is
 * still on its way, the worker's window goes on until the next end. So a window of all workers is complete a little
 * later, and those of slow asynchronous workers are longer.
 */
struct times_windows {
    struct world *world;
    struct phase_clock *clock;
    int workers, worker;
    struct phase_times sent;    /* up to the last window of this rank */
    struct times_window *slots; /* rank 0: (workers), of which [0] is its own; else (1) */
    struct message *messages;   /* the same */
    struct phase_times *times;  /* rank 0: (workers) of the last complete window */
    char *open;                 /* rank 0: (workers) 1: more windows will come from it */
    int64_t step;               /* rank 0: at the end of its own window; -1: that has not ended */
};

/* On every worker. ERR_NOMEM, ERR_PEER. On OK times_windows_close() it, even after an error in between. */
int times_windows_open(struct times_windows *t, struct world *w, struct phase_clock *clock, int workers, int worker,
                       struct error *e);
/* Call after each step; ends: 1: a window ends with it. 1 on rank 0: `times` has a window of all workers, which ended
 * for rank 0 with *step; else 0; < 0: ERR_PEER. */
int times_windows_step(struct times_windows *t, int64_t now, int ends, int64_t *step, struct error *e);
/* Waits until rank 0 has all messages of the others (deadline: as of the world; `doing` as above). ended: 0: this rank
 * failed, and nobody waits. */
int times_windows_close(struct times_windows *t, int ended, const char *doing, struct error *e);

/* ---- time watch -------------------------------------------------------------------------------------------------- */

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
