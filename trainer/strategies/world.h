/*
 * world.h - the ranks of a run and messages between them: the only part that talks to MPI, and none of its types show
 * here. Started without a launcher (mpirun) the world is one rank and no MPI call is made at all.
 *
 * Nothing here spins: MPI's blocking calls burn a core, so everything that waits tests, then sleeps, 20 to 500
 * microseconds. Every wait has the deadline of the world. Functions marked collective are called by all ranks in the
 * same order. One thread.
 */
#ifndef TRAINER_STRATEGIES_WORLD_H
#define TRAINER_STRATEGIES_WORLD_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct world;

/* Reads the launcher's environment and starts MPI where there is one. OK: *out is yours until world_close(). */
int world_open(struct world **out, struct error *e);
/* Ends MPI in order (collective), frees w. NULL is fine. */
void world_close(struct world *w);
/* Ends all ranks at once, this one with `status`; does not return. */
_Noreturn void world_abort(struct world *w, int status);

int world_rank(const struct world *w);
int world_size(const struct world *w);
int world_one_host(const struct world *w); /* 1: all ranks share one host's memory */
int world_orphaned(const struct world *w); /* 1: the launcher's process that started this rank is gone */
/* 1: what this rank says goes through a launcher on this host to a terminal. */
int world_watched(const struct world *w);
/* Seconds between SIGTERM and SIGKILL when Open MPI's mpirun ends the ranks, as far as they are told; 0: there is no
 * mpirun. The parameter of that name sets them. */
#define WORLD_GRACE_PARAMETER "odls_base_sigkill_timeout"
double world_grace(const struct world *w);
/* Called now and then while this rank waits for others, from within. NULL: nothing. Borrowed until the next call. */
void world_set_idle(struct world *w, void (*idle)(void *context), void *context);
void world_set_deadline(struct world *w, double seconds); /* 60 until set */
double world_deadline(const struct world *w);

/* Collective. Each rank brings how it fared, and its sentence in e where it fared badly; all get the same: OK where all
 * are OK, else status and sentence of the lowest rank that is not. So rank 0 can speak for any of them. */
int world_agree(struct world *w, int status, struct error *e);

/* Collective. Rank 0's n bytes to all. `what` is named when the deadline passes. */
int world_broadcast(struct world *w, void *bytes, size_t n, const char *what, struct error *e);

/* Collective. ERR_ARG, with a sentence naming `what` and the ranks that differ from rank 0. */
int world_same(struct world *w, uint64_t value, const char *what, struct error *e);

/* Collective: returns when all ranks have come. */
int world_barrier(struct world *w, struct error *e);

/* A message under way. Zeroed: none, and message_done() says 1. */
struct message {
    uint64_t handle;
    int active, source; /* source: who sent it, after a receive is done */
};

enum {
    WORLD_ANY_RANK = -1,
    /* When a deadline passes several ranks know. One speaks and ends all, which takes the launcher a second or two; the
     * others wait this much longer, so that they speak only where it cannot. */
    WORLD_GRACE_SECONDS = 3
};

/* Start sending or receiving n bytes (n <= INT_MAX); the bytes are the message's until message_done(). Messages
 * between two ranks with one tag arrive in order. */
int world_send(struct world *w, int to, int tag, const void *bytes, size_t n, struct message *m, struct error *e);
int world_receive(struct world *w, int from, int tag, void *bytes, size_t n, struct message *m, struct error *e);
/* 1: done (or never started). 0: not yet. */
int message_done(struct world *w, struct message *m, struct error *e);
/* Gives up a receive that nobody will answer. */
void message_cancel(struct world *w, struct message *m);

/*
 * Waiting: a pause that grows, and a deadline that counts only time this process was running in (a run stopped and
 * continued by its terminal has not waited). Whoever waits so calls what world_set_idle() named.
 */
struct patience {
    struct world *world;
    double limit;  /* seconds after which patience_pause says 0 */
    double waited; /* seconds so far */
    long nanoseconds;
    double last;
};
void patience_init(struct patience *p, struct world *w, double limit);
void patience_calm(struct patience *p);  /* something came: short pauses again, and the deadline begins anew */
int patience_pause(struct patience *p);  /* sleeps; 0: the limit has passed */
/* Counts what passed since the last call as waiting, at most 0.1 s of it; for those who sleep by other means. */
int patience_spend(struct patience *p);

#endif
