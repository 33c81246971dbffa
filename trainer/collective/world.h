/*
 * world.h - the ranks of a run, what they do together, and messages between them, over participants.h. Started without
 * a launcher (mpirun) the world is one rank and no MPI call is made at all.
 *
 * Nothing here spins: MPI's blocking calls burn a core, so everything that waits tests, then sleeps, 20 to 500
 * microseconds. Every wait has the deadline of the world, MPI's own start and end too (watchdog.h), and ends with a
 * sentence that names the ranks waited for and their hosts: "waited 60 s for rank 1 on host b to ...". Functions marked
 * collective are called by all ranks in the same order; `doing` is what a rank that does not come is to do. Once one of
 * them has not come, world_lost() says so, and nothing is left to this rank but to speak and to end all ranks. One
 * thread.
 */
#ifndef TRAINER_COLLECTIVE_WORLD_H
#define TRAINER_COLLECTIVE_WORLD_H

#include "base/error.h"
#include "base/process.h"
#include "trainer/collective/participants.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct world;

/* Reads the launcher's environment and starts MPI where there is one. deadline: in seconds. *out is yours until
 * world_close(), after an error for world_abort() alone; NULL where there was no memory. */
int world_open(struct world **out, double deadline, struct error *e);
/* Collective. The same over other participants, which world_close() ends: for tests. */
int world_over(struct world **out, struct participants *p, double deadline, struct error *e);
/* Ends the participants in order (collective), frees w. NULL is fine. */
void world_close(struct world *w);
/* Ends all ranks at once, this one with `status`; does not return. */
_Noreturn void world_abort(struct world *w, int status);

int world_rank(const struct world *w);
int world_size(const struct world *w);
int world_one_host(const struct world *w); /* 1: all ranks share one host's memory */
int world_lost(const struct world *w);     /* 1: a rank did not come to what all do together */
/* Where the ranks run, by rank: host, boot and process. NULL without a launcher. Borrowed. */
const struct process *world_places(const struct world *w);
enum { WORLD_NAME_MAX = HOST_NAME_MAX + 32 };
void world_name(const struct world *w, int rank, char *text, size_t size); /* "rank 2 on host b" */
/* Puts "rank 2 on host b: " before the sentence, where there are others; for an error of that rank. Returns e->code. */
int world_sign(const struct world *w, int rank, struct error *e);
int world_orphaned(const struct world *w); /* 1: the launcher's process that started this rank is gone */
/* 1: what this rank says goes through a launcher on this host to a terminal. */
int world_watched(const struct world *w);
/* Seconds between SIGTERM and SIGKILL when Open MPI's mpirun ends the ranks, as far as they are told; 0: there is no
 * mpirun. The parameter of that name sets them. */
#define WORLD_GRACE_PARAMETER "odls_base_sigkill_timeout"
double world_grace(const struct world *w);
/* Called now and then while this rank waits for others, from within. NULL: nothing. Borrowed until the next call. */
void world_set_idle(struct world *w, void (*idle)(void *context), void *context);
double world_deadline(const struct world *w);
/* The launcher ends the ranks, before their deadline may be: whoever waits, or will, says for whom, once, through
 * `say`, and waits on. The sentence is the callee's to change. */
void world_hurry(struct world *w, void (*say)(void *context, struct error *sentence), void *context);

/* Collective. Each rank brings how it fared, and its sentence in e where it fared badly; all get the same: OK where all
 * are OK, else status and sentence of the lowest rank that is not, which is named unless all say the same. So rank 0
 * can speak for any of them. */
int world_agree(struct world *w, const char *doing, int status, struct error *e);

/* Collective. Rank 0's n bytes to all, "send WHAT". */
int world_broadcast(struct world *w, void *bytes, size_t n, const char *what, struct error *e);

/* Collective. ERR_ARG, with a sentence naming `what` and the ranks that differ from rank 0. */
int world_same(struct world *w, const char *doing, uint64_t value, const char *what, struct error *e);

/* A message under way. Zeroed: none, and message_done() says 1. */
struct message {
    uint64_t handle;
    int active, source; /* source: who sent it, after a receive is done */
};

enum { WORLD_ANY_RANK = PARTICIPANT_ANY };

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
    double limit; /* seconds after which patience_pause says 0 */
    double begun; /* by world_ran() */
    long nanoseconds;
};
void patience_init(struct patience *p, struct world *w, double limit);
void patience_calm(struct patience *p);  /* something came: short pauses again, and the deadline begins anew */
int patience_pause(struct patience *p);  /* sleeps; 0: the limit has passed, or world_hurry() */
int patience_spend(struct patience *p); /* the same for those who sleep by other means */
/* After the limit has passed: 1 if this rank is to say that it waited for the ranks that are late (by rank). First
 * speak those who miss one rank, or one whole host: of several, some may themselves be waiting for another one. And of
 * those who speak, the first rank. */
int patience_speaks(const struct patience *p, const char *late);
/* Then: "waited 60 s FORMAT; ending all ranks" as ERR_PEER, or 0 where world_hurry() had this said and the waiting goes
 * on. */
int patience_over(const struct patience *p, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The clock of this waiting: seconds that this process was running in, as it counts at most 0.1 s from one call to the
 * next. */
double world_ran(struct world *w);

#endif
