/*
 * server_loop.h - a parameter server's life: it receives, lets server_core decide and aggregation compute, and sends.
 * One loop looks at everything that may have come and sleeps when nothing has, so an idle server leaves its core to the
 * workers. One thread.
 */
#ifndef TRAINER_SERVER_SERVER_LOOP_H
#define TRAINER_SERVER_SERVER_LOOP_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/world.h"
#include "trainer/optimizer.h"
#include "trainer/server/placement.h"

#include <stdint.h>

struct server_setup {
    struct world *world;             /* workers are its first ranks, server j is rank workers + j */
    struct optimizer *optimizer;     /* its state at the start, and its rates */
    const struct network *network;   /* to name tensors */
    const struct packing *packing;   /* what this server holds */
    int workers, servers, server, synchronous;
    int64_t first_step, max_steps;
};

struct server_loop;

/* The setup is copied; what it points to is borrowed. ERR_NOMEM. OK: *out is yours, server_loop_free() it. */
int server_loop_new(struct server_loop **out, const struct server_setup *setup, struct error *e);
void server_loop_free(struct server_loop *l); /* NULL is fine */

/* Until worker 0 lets the server go. *signal: the signal that asked this rank to end, 0: none yet. ERR_PEER, with a
 * sentence that names the workers waited for. */
int server_loop_run(struct server_loop *l, const volatile int *signal, struct error *e);

#endif
