/*
 * probe.h - measures what a plan needs of these machines: a step of the model, messages between two ranks, and adding
 * in memory.
 *
 * What a step of a model costs on this machine, alone: forward, backward and update, and when in backward which
 * gradients are final. On noise for samples: the arithmetic does not care.
 */
#ifndef TRAINER_PLAN_PROBE_H
#define TRAINER_PLAN_PROBE_H

#include "base/error.h"
#include "model/model.h"
#include "trainer/collective/world.h"
#include "trainer/plan/setting.h"

#include <stddef.h>

enum { PROBE_FINALS_MOST = 512 };

struct probe_compute {
    double forward, backward, update; /* seconds: medians */
    double least, most;               /* of whole steps */
    int steps;
    struct plan_final finals[PROBE_FINALS_MOST];
    size_t final_count;
};

/* Trains with batches of so many samples for about `seconds`, at least 5 steps, in so many threads, which share each
 * batch equally. ERR_ARG, ERR_IO, ERR_NOMEM. */
int probe_compute(struct probe_compute *out, const struct model *model, int batch, int threads, double seconds,
                  struct error *e);

/* ---- probe link -------------------------------------------------------------------------------------------------- */

/*
 * How fast messages are between the first and the last rank of a run: a ping-pong over MPI, waited for
 * as the trainer waits.
 */

enum { PROBE_SIZES = 5 };

struct probe_link {
    double bytes[PROBE_SIZES], seconds[PROBE_SIZES]; /* of a message, one way: the median */
    struct plan_link link;                           /* by these; bandwidth without headers */
    double message;                                  /* seconds from one small message to the next, of many in a row */
};

/* Collective, of two ranks or more. Messages of up to so many bytes. Results are rank 0's. ERR_PEER, ERR_NOMEM. */
int probe_link(struct probe_link *out, struct world *w, size_t largest, struct error *e);

/* ---- probe memory ------------------------------------------------------------------------------------------------ */

/*
 * How fast this machine adds vectors in memory: one core, and all of them together, which share the
 * memory's bus.
 */

struct probe_memory {
    double add; /* seconds that a core takes to add a byte */
    double bus; /* bytes a second that all cores add together */
    int cores;  /* that this process may use */
};

/* Takes about a fifth of a second. ERR_NOMEM. */
int probe_memory(struct probe_memory *out, struct error *e);

#endif
