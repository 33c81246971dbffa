/*
 * follower.h - on each server: carries out the arbiter's decisions, packet by packet, as their pushes come in. A packet
 * applies decisions in their order, each once all pushes that it names have come, and packet 0, which has the weights,
 * before the others. No messages and no arithmetic here.
 *
 * One thread.
 */
#ifndef TRAINER_SERVER_DECISIONS_FOLLOWER_H
#define TRAINER_SERVER_DECISIONS_FOLLOWER_H

#include "base/error.h"
#include "trainer/server/decisions/verdict.h"

#include <stddef.h>
#include <stdint.h>

/* what to do next with a packet */
struct application {
    size_t packet;
    int64_t step;
    const int *used;  /* (used_count) workers whose pushes to add, for an update; none: no update */
    const int *freed; /* (freed_count) those whose pushes are over */
    int used_count, freed_count;
    const uint8_t *fates; /* (workers) whom to answer */
};

struct follower;

/* ERR_NOMEM. On OK *out is yours, follower_free() it. */
int follower_new(struct follower **out, int workers, size_t packets, struct error *e);
void follower_free(struct follower *f); /* NULL is fine */

/* Call at the start: nobody decides: every decision is an update, of the pushes of all workers, who are all answered.
 * The first is number first_step. */
void follower_use_all(struct follower *f, int64_t first_step);
/* Takes the next decision; copies it. At most follower_room() may be unfinished. */
void follower_decision(struct follower *f, const struct decision *d);
int follower_room(const struct follower *f);
/* 1: this worker's next push of this packet may come; 0: the last one is not applied yet. */
int follower_takes(const struct follower *f, int worker, size_t packet);
/* It has come. */
void follower_push(struct follower *f, int worker, size_t packet);

/* 1: *out is to be done, valid until the next call; 0: nothing can be done yet. */
int follower_next(struct follower *f, struct application *out);

/* Applies only this many decisions until it is called again; INT64_MAX: all. For a cut. */
void follower_hold(struct follower *f, int64_t decisions);
/* Call at the start: packets apply a decision only once all have applied the one before, and that is done with:
 * follower_release() says so. */
void follower_wait_for_release(struct follower *f);
void follower_release(struct follower *f);
int64_t follower_known(const struct follower *f); /* decisions taken; where nobody decides: begun */
/* 1: every packet has applied just so many decisions, and these are done with. */
int follower_is_at(const struct follower *f, int64_t decisions);
/* 1: a decision needs a push of this worker that has not come, the first one for which others have, if there is one;
 * or, where none is left to do, it has sent nothing. */
int follower_expects(const struct follower *f, int worker);
/* The packet for which follower_expects() holds for some worker, the first; *step: its updates. */
size_t follower_waits_for(const struct follower *f, int64_t *step);

#endif
