/*
 * worker_side.h - a worker's side of the protocol with parameter servers (parameter_protocol.h): pushes packets of
 * gradients as soon as they are final, and takes the new values. Used by one thread. It never computes, except that of
 * the workers of a host that push together (groups/shared_push.h) the first one adds their gradients and exchanges them
 * with the servers; all take the values that come.
 *
 * A step: begin, then ready while the backward pass makes gradients, then end. Between steps worker 0 may collect the
 * servers' state. Errors: ERR_PEER, with a sentence that names the server waited for, and its tensors.
 */
#ifndef TRAINER_SERVER_WORKER_SIDE_H
#define TRAINER_SERVER_WORKER_SIDE_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/tally.h"
#include "trainer/collective/world.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/server/parameter_protocol.h"
#include "trainer/server/placement.h"
#include "trainer/server/shared_push.h"
#include "trainer/timing/phase_clock.h"

#include <stddef.h>
#include <stdint.h>

struct worker_setup {
    struct world *world;         /* workers are its first ranks, server j is rank workers + j */
    struct optimizer *optimizer; /* gets the servers' values, and their state when it is collected */
    struct network *network;
    const struct packing *packings; /* (servers) */
    int workers, worker, servers, synchronous;
    const struct reduction *reduction; /* workers' vectors */
    struct shared_push *shared;        /* synchronous: pushes together with its host's workers; NULL: alone; borrowed */
    int decided;                       /* server 0 decides about pushes */
    size_t rounded;                    /* elements below it are pushed as bfloat16, one vector; 0: none */
    int clips; /* 1: with --clip-norm: synchronous servers send the norm, asynchronous ones get worker_side_clip()'s */
    int64_t first_step;
    struct phase_clock *clock; /* may be NULL */
};

struct worker_report {
    double bytes_step;     /* sent per step */
    double staleness_mean; /* of pushes up to this worker's last one */
    int64_t staleness_max;
    double gradient_norm;                /* clips, synchronous: of the last update, before clipping; else 0 */
    int64_t pushes, unused;              /* of this worker: all, and those that were dropped */
    int64_t dropped;                     /* pushes of all workers up to this one's last verdict */
    int current;                         /* 1: it has the weights of the last step that it was told of */
    struct server_statistics statistics; /* worker 0, once the run is finished; else 0 */
};

struct worker_side;

/* The setup is copied; its pointers are borrowed. ERR_NOMEM. On OK *out is yours, worker_side_free() it. */
int worker_side_new(struct worker_side **out, const struct worker_setup *setup, struct error *e);
void worker_side_free(struct worker_side *w); /* NULL is fine */

/* (reduction_vectors) where this worker's vectors are made; the last is the network's exchange vector. They are valid
 * until worker_side_free(). */
real *const *worker_side_vectors(const struct worker_side *w);

/* Call before training on the batch of `step`. */
int worker_side_begin(struct worker_side *w, int64_t step, struct error *e);
/* All vectors of this worker are final from `low` on. Never blocks; errors are kept for worker_side_end(). */
void worker_side_ready(struct worker_side *w, size_t low);
/* Asynchronous, clips: call before worker_side_end(), which pushes only then: by what this gradient is clipped. */
void worker_side_clip(struct worker_side *w, real factor);
/* Call after training, with this worker's part of the step: returns when the network holds the next weights. tally: in:
 * the flags; out: the result, as of struct tally. */
int worker_side_end(struct worker_side *w, const struct tally_part *part, struct tally *tally, struct error *e);

/* On worker 0, between steps: brings the state of all servers, as of *step updates, into the optimizer. last: waits
 * until every worker is done. */
int worker_side_collect(struct worker_side *w, int last, int64_t *step, struct error *e);
/* After the last step: worker 0 releases the servers, and gets the run's statistics. */
int worker_side_finish(struct worker_side *w, struct error *e);

struct worker_report worker_side_report(const struct worker_side *w);

#endif
