/*
 * arbiter.h - on server 0: decides, push by push, what becomes of the workers' gradients, once for all variables. Every
 * server, this one included, carries out its decisions in their order (server_core.h), so an update has the same
 * members everywhere, and a worker gets values of one version. No messages, no clock, no weights here.
 *
 * Synchronous: the first `aggregate` pushes whose gradients belong to the current weights make the update. Pushes that
 * come later (backup workers) are dropped at the next update, with which their workers get new values.
 *
 * Asynchronous: each push makes an update, in the order in which they have come whole. With a bound of T on the delay,
 * a worker that has made n pushes gets its values, and goes on, once all others that continue have made at least n - T.
 *
 * With `replay` the order is that of a record: a push waits until it is its turn.
 *
 * One thread.
 */
#ifndef TRAINER_SERVER_ARBITER_H
#define TRAINER_SERVER_ARBITER_H

#include "base/error.h"
#include "trainer/server/arrivals.h"
#include "trainer/server/verdict.h"

#include <stdint.h>

#define ARBITER_UNBOUNDED (-1)

struct arbiter_plan {
    int workers, synchronous;
    int aggregate;     /* synchronous: 1 to workers */
    int64_t staleness; /* asynchronous: T or ARBITER_UNBOUNDED */
    int64_t first_step, max_steps;
    const struct arrivals *replay; /* borrowed; NULL: in order of arrival */
};

struct ruling {
    struct decision decision;     /* for all servers, if decides */
    int decides;                  /* 0: only verdicts, for workers that get no values */
    const struct arrival *pushes; /* (push_count) that it used or dropped, as they are recorded */
    size_t push_count;
};

struct arbiter;

/* ERR_NOMEM. On OK *out is yours, arbiter_free() it. */
int arbiter_new(struct arbiter **out, const struct arbiter_plan *plan, struct error *e);
void arbiter_free(struct arbiter *a); /* NULL is fine */

/* A worker's next push is whole: its part of the step. A worker has at most one that is not decided. */
void arbiter_push(struct arbiter *a, int worker, const struct tally_part *part);
/* The worker will push no more. */
void arbiter_done(struct arbiter *a, int worker, uint32_t flags);
/* Flags for all, of a server's own signal. */
void arbiter_flags(struct arbiter *a, uint32_t flags);

/* The next ruling, if one is due: 1, and *out, valid until the next call; 0: others must come first. ERR_CORRUPT: the
 * run is not the one that was recorded. */
int arbiter_next(struct arbiter *a, struct ruling *out, struct error *e);
/* The verdict that goes with the last ruling to this worker; NULL: none yet. Valid until the next ruling. */
const struct verdict *arbiter_verdict(const struct arbiter *a, int worker);

int64_t arbiter_step(const struct arbiter *a); /* updates decided, and those before the run */
/* 1: it waits for a push of this worker, which has none here. */
int arbiter_expects(const struct arbiter *a, int worker);
const struct server_statistics *arbiter_statistics(const struct arbiter *a);

#endif
