/*
 * server_loop.h - runs a parameter server: receives, lets server_core decide and aggregation compute, and sends. One
 * loop checks everything that may have come and sleeps if nothing has, so an idle server leaves its core to the
 * workers. One thread.
 */
#ifndef TRAINER_SERVER_SERVER_LOOP_H
#define TRAINER_SERVER_SERVER_LOOP_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/world.h"
#include "trainer/optimizers/gradient_norm.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/server/arbiter.h"
#include "trainer/server/placement.h"
#include "trainer/server/recording.h"
#include "trainer/server/table_server.h"
#include "trainer/server/worker_groups.h"
#include "trainer/timing/phase_clock.h"

#include <stdint.h>

struct server_setup {
    struct world *world;           /* workers are its first ranks, server j is rank workers + j */
    struct optimizer *optimizer;   /* its state at the start, and its rates */
    const struct network *network; /* to name tensors */
    const struct packing *packing; /* the part that this server holds */
    int workers, servers, server, synchronous;
    /* Which workers push together, what they push, and how that is added; asynchronous or decided: each alone, with one
     * vector; borrowed. */
    const struct worker_groups *groups;
    int64_t first_step, max_steps;
    struct phase_clock *clock; /* may be NULL; a step is an update of the server's first packet */
    size_t rounded;            /* as in struct worker_setup */
    int decided; /* as in struct server_plan; the arbiter's workers, steps and synchronous are set from above */
    struct arbiter_plan arbiter;
    struct recording *recording; /* decided, on server 0: of the pushes; borrowed; NULL: none */
    /* --clip-norm, synchronous: who holds which part of the gradient; borrowed; NULL: updates wait for no norm. */
    const struct gradient_parts *parts;
    /* Rows of tables, which travel alone, beside the packets; borrowed; NULL: none. Not decided. */
    struct table_server *tables;
};

struct server_loop;

/* The setup is copied; its pointers are borrowed. ERR_NOMEM. On OK *out is yours, server_loop_free() it. */
int server_loop_new(struct server_loop **out, const struct server_setup *setup, struct error *e);
void server_loop_free(struct server_loop *l); /* NULL is fine */

/* Runs until worker 0 releases the server. *signal: the signal that asked this rank to end, 0: none yet. ERR_PEER, with
 * a sentence that names the workers waited for. */
int server_loop_run(struct server_loop *l, const volatile int *signal, struct error *e);

#endif
