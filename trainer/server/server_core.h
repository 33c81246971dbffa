/*
 * server_core.h - the decisions of a parameter server: which pushes it may take, the action that follows each message,
 * where a consistent cut is, when its work is over, and for whom it waits. Messages go in, and each yields at most one
 * action; no MPI, no clock and no weights here: server_loop.c carries messages and actions, aggregation.c does the
 * arithmetic. Times are seconds of one clock of the caller's. The protocol is in parameter_protocol.h.
 *
 * One thread. Only server_core_new() can fail.
 *
 * Before it: the follower, which carries out decisions packet by packet.
 */
#ifndef TRAINER_SERVER_SERVER_CORE_H
#define TRAINER_SERVER_SERVER_CORE_H

#include "base/error.h"
#include "trainer/server/arbiter.h"
#include "trainer/server/parameter_protocol.h"
#include "trainer/server/verdict.h"

#include <stddef.h>
#include <stdint.h>

/* ---- follower ---------------------------------------------------------------------------------------------------- */

/*
 * On each server: carries out the arbiter's decisions, packet by packet, as their pushes come in. A packet
 * applies decisions in their order, each once all pushes that it names have come, and packet 0, which has the weights,
 * before the others. No messages and no arithmetic here.
 *
 * One thread.
 */

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

/* Takes the next decision; copies it. At most follower_room() may be unfinished. */
void follower_decision(struct follower *f, const struct decision *d);
int follower_room(const struct follower *f);
/* 1: this worker's next push of this packet may come; 0: the last one is not applied yet. */
int follower_takes(const struct follower *f, int worker, size_t packet);
/* It has come. */
void follower_push(struct follower *f, int worker, size_t packet);

/* 1: *out is to be done, valid until the next call; 0: nothing can be done yet. */
int follower_next(struct follower *f, struct application *out);

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

/* ---- server core ------------------------------------------------------------------------------------------------- */

struct server_plan {
    int workers;
    int synchronous;
    int tallies;    /* 1: this is server 0, which gets the workers' tallies */
    int servers;    /* of the run */
    size_t packets; /* of a push to this server; may be 0 */
    int64_t first_step, max_steps;
    /* 1: server 0 decides which pushes make an update, by `arbiter`, and all servers follow; 0: those of all workers
     * do, so that is known before they come. */
    int decided;
    int whole; /* 1: one decision is carried out after the other: see server_core_release() */
    struct arbiter_plan arbiter;
};

enum server_action_kind {
    SERVER_NOTHING,  /* yet: others must come first */
    SERVER_COUNTS,   /* send counts to worker 0: the server is frozen now */
    SERVER_SNAPSHOT, /* send the state to worker 0: the server is at the cut, and is released */
    SERVER_RULING,   /* send the decision, if any, to all other servers, and the verdicts to their workers */
    SERVER_APPLY,    /* carry out `application`: free and add pushes, update, answer workers */
};

struct server_action {
    enum server_action_kind kind;
    const int64_t *counts; /* COUNTS: (CUT_WORDS) valid until the core's next call */
    int back;              /* SNAPSHOT: 1: the state before the last update of each packet */
    struct ruling ruling;
    struct application application;
};

struct server_core;

/* ERR_NOMEM. On OK *out is yours, server_core_free() it. */
int server_core_new(struct server_core **out, const struct server_plan *plan, struct error *e);
void server_core_free(struct server_core *c); /* NULL is fine */

/* Begins the run: all workers count as heard from now. */
void server_core_begin(struct server_core *c, double now);

/* 0: do not take this worker's next push of this packet: the one before has not been used. */
int server_core_takes_push(const struct server_core *c, int worker, size_t packet);
/* 0: do not take the next tally of any worker: it is beyond the cut at which this server is frozen. */
int server_core_takes_tally(const struct server_core *c);

/* Call when the server takes a message. flags: of this server's own signal (tally_signal), for all ranks. part is
 * copied. */
void server_core_push(struct server_core *c, int worker, size_t packet, double now);
void server_core_tally(struct server_core *c, int worker, const struct tally_part *part, uint32_t flags, double now);
/* words: as received, CONTROL_WORDS of them. An unknown kind is treated as CONTROL_EXIT. */
void server_core_control(struct server_core *c, int worker, const int64_t *words, double now);

/* Decided: a decision of server 0 has come. Copies it. At most server_core_room() are not carried out yet. */
void server_core_decision(struct server_core *c, const struct decision *d);
int server_core_room(const struct server_core *c);
/* The next ruling or application, if one is due: call after every message until nothing is. ERR_CORRUPT: see
 * arbiter_next(). */
int server_core_due(struct server_core *c, double now, struct server_action *out, struct error *e);
/* Whole: the decision whose packets have all been applied is done with. */
void server_core_release(struct server_core *c);
/* On server 0, after SERVER_RULING: the verdict for this worker; NULL: none. */
const struct verdict *server_core_verdict(const struct server_core *c, int worker);

/* The next action towards a cut, if one is due: call after every round of messages. */
void server_core_cut(struct server_core *c, double now, struct server_action *out);

/* 1: all workers are done and have released this server. */
int server_core_ended(const struct server_core *c);

/*
 * Marks in late (workers) whom the server waits for; 1: there are some. calm: when the last message came. Synchronous:
 * workers that are behind others, once nothing came for `limit` seconds; asynchronous: those not heard from for that
 * long. If all are silent and there are other servers, workers may be waiting for one of these, which knows that: then
 * `precedence` seconds later.
 */
int server_core_late(const struct server_core *c, double now, double calm, double limit, double precedence, char *late);
/* The packet waited for, the first that some have pushed and others have not (else 0); *step: its updates. */
size_t server_core_waits_for(const struct server_core *c, int64_t *step);

/* Updates of the run, according to the tallies (server 0). */
int64_t server_core_step(const struct server_core *c);
struct server_statistics server_core_statistics(const struct server_core *c); /* likewise, of all so far */

#endif
