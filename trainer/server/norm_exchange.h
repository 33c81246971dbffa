/*
 * norm_exchange.h - how ranks find the norm of a gradient of which each server holds a part: with each update every
 * server sends its sums of squares (trainer/update/gradient_norm.h), in one message, to those who need the norm, and
 * these compute it of the sums of all. So all have the same one. Parameter servers send them to each other; servers of
 * tables alone to the workers, who have the rest of the gradient themselves. One thread; never waits, but for a message
 * that is being taken.
 *
 *   server -> whoever needs the norm   SQUARES   int64 step, then the sender's sums, as doubles
 */
#ifndef TRAINER_SERVER_NORM_EXCHANGE_H
#define TRAINER_SERVER_NORM_EXCHANGE_H

#include "base/error.h"
#include "trainer/collective/world.h"
#include "trainer/optimizers/gradient_norm.h"

#include <stdint.h>

struct norm_exchange_setup {
    struct world *world;
    const struct gradient_parts *parts;
    int workers, servers;    /* server j is rank workers + j, and holder j */
    int own;                 /* the holder that this rank is */
    int listens;             /* 1: it needs the norm */
    int receiver, receivers; /* the first rank to which it sends, and how many there are; not to itself */
};

struct norm_exchange;

/* setup is copied, its pointers are borrowed. ERR_NOMEM. On OK *out is yours, norm_exchange_free() it. */
int norm_exchange_new(struct norm_exchange **out, const struct norm_exchange_setup *setup, struct error *e);
void norm_exchange_free(struct norm_exchange *x); /* NULL is fine */

/* Starts receiving. */
int norm_exchange_begin(struct norm_exchange *x, struct error *e);
/* Where this rank's sums go, before they are sent. */
double *norm_exchange_own(struct norm_exchange *x);
/* Sends them, as those of update `step`. */
int norm_exchange_send(struct norm_exchange *x, int64_t step, struct error *e);
/* After that: 1: those of all have come, *norm is set; 0: not yet, call again. ERR_CORRUPT: one is of another step. */
int norm_exchange_look(struct norm_exchange *x, double *norm, struct error *e);
/* Marks in late (ranks) the servers that it waits for. 1: there are some; 0: it waits for none. */
int norm_exchange_late(const struct norm_exchange *x, char *late);
/* After the last step. */
int norm_exchange_end(struct norm_exchange *x, struct error *e);

#endif
