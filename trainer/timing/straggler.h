/*
 * straggler.h - finds the worker that the others wait for, from the times of all of them. Pure.
 *
 * What counts is a worker's busy time per step: all phases but waiting, so also input, saving, and time in which the
 * system gave it no processor. The slowest worker is named if it takes at least STRAGGLER_RATIO times as long as the
 * median of the others and this costs at least STRAGGLER_COST of the time: the part by which a step would be shorter
 * if the slow workers were as fast as the slowest of the rest. Slow are those nearer to the slowest than to the median.
 * Workers of an asynchronous run do not wait for each other: there the cost is 0.
 */
#ifndef TRAINER_TIMING_STRAGGLER_H
#define TRAINER_TIMING_STRAGGLER_H

#include "base/buffer.h"
#include "base/error.h"
#include "trainer/timing/phase_clock.h"

#include <stdint.h>

#define STRAGGLER_RATIO 1.25
#define STRAGGLER_COST 0.05
#define STRAGGLER_AGAIN 0.15

struct straggler {
    int worker;       /* the slowest; -1: none is slow */
    int slow;         /* how many are slow, this one included */
    double ratio;     /* its busy time per step over the others' median */
    double cost;      /* 0 to 1: share of the time */
    enum phase phase; /* in which it loses most of that */
    int64_t since;    /* step; -1: the whole time */
};

/* workers: the times of `count` workers. Those without a step are ignored. room: memory for `count` numbers. */
void straggler_find(struct straggler *out, const struct phase_times *workers, int count, int synchronous, double *room);

/* Appends a sentence, "rank 2 on host b is 1.8 times slower than the others since step 400, mostly in backward; waiting
 * for it costs 31 % of the time"; past: "was", "cost". name: "rank 2 on host b". */
void straggler_text(struct buffer *out, const struct straggler *s, const char *name, int past);

/*
 * Watches a run: a worker is reported once it was slow in STRAGGLER_LOOKS looks one after the other, each of at least a
 * second and three steps, so that a hiccup is not; and again when it costs STRAGGLER_AGAIN more of the time.
 */
enum { STRAGGLER_LOOKS = 3 };

struct straggler_watch {
    struct phase_times *look, *whole; /* (workers): of the current look; since `candidate` is slow */
    double *room;                     /* (workers) */
    int workers, synchronous;
    int candidate, looks; /* slow in that many looks up to now; -1: none */
    int told;             /* reported; -1: none */
    double told_cost;
    int64_t look_from, candidate_from; /* steps */
};

enum straggler_news { STRAGGLER_NOTHING, STRAGGLER_SLOW, STRAGGLER_OVER };

/* The run begins at `step`. ERR_NOMEM. On OK yours, straggler_watch_release() it. */
int straggler_watch_init(struct straggler_watch *w, int workers, int synchronous, int64_t step, struct error *e);
void straggler_watch_release(struct straggler_watch *w); /* may be zeroed */
/* times: of each worker since the last call; step: the current one. SLOW: *out is to be reported; OVER: worker
 * out->worker, reported earlier, is as fast as the others since step out->since. */
enum straggler_news straggler_watch_add(struct straggler_watch *w, const struct phase_times *times, int64_t step,
                                        struct straggler *out);

#endif
