/*
 * trace_exchange.h - the trace of all ranks (--trace FILE): each keeps its last spans in memory, and at the end rank 0
 * collects and writes them, on its clock. The clocks are compared at the start and at the end.
 */
#ifndef TRAINER_TRACE_EXCHANGE_H
#define TRAINER_TRACE_EXCHANGE_H

#include "base/error.h"
#include "trainer/collective/clock_offset.h"
#include "trainer/collective/world.h"
#include "trainer/timing/span_log.h"

/* of one rank; fewer if all ranks together would have more than TRACE_ALL */
enum { TRACE_SPANS = 50000, TRACE_ALL = 1000000 };

struct trace_exchange {
    struct world *world;
    const char *path;
    struct span_log spans;      /* of this rank; for its phase_clock */
    struct clock_offset *first; /* rank 0: (ranks) at the start */
};

/* Collective; all get the same result. path (borrowed) is checked on rank 0. ERR_NOMEM, ERR_ARG, ERR_PEER. On OK yours,
 * trace_exchange_close() it. */
int trace_exchange_open(struct trace_exchange *t, struct world *w, const char *path, struct error *e);
/* Collective. Rank 0 writes the file by rename. ERR_IO, on rank 0: it could not; else ERR_PEER, ERR_NOMEM. workers: the
 * first ranks; the others are servers. `doing`: what a late rank should do. */
int trace_exchange_write(struct trace_exchange *t, int workers, const char *doing, struct error *e);
void trace_exchange_close(struct trace_exchange *t); /* may be zeroed */

#endif
