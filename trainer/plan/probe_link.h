/*
 * probe_link.h - how fast messages are between the first and the last rank of a run: a ping-pong over MPI, waited for
 * as the trainer waits.
 */
#ifndef TRAINER_PLAN_PROBE_LINK_H
#define TRAINER_PLAN_PROBE_LINK_H

#include "base/error.h"
#include "trainer/collective/world.h"
#include "trainer/plan/setting.h"

enum { PROBE_SIZES = 5 };

struct probe_link {
    double bytes[PROBE_SIZES], seconds[PROBE_SIZES]; /* of a message, one way: the median */
    struct plan_link link;                           /* by these; bandwidth without headers */
    double message;                                  /* seconds from one small message to the next, of many in a row */
};

/* Collective, of two ranks or more. Messages of up to so many bytes. Results are rank 0's. ERR_PEER, ERR_NOMEM. */
int probe_link(struct probe_link *out, struct world *w, size_t largest, struct error *e);

#endif
