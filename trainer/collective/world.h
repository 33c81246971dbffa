/*
 * world.h - the ranks of a run, their collective operations, and messages between them, over participants.h. Without a
 * launcher (mpirun) the world is one rank and makes no MPI call.
 *
 * Nothing here spins: MPI's blocking calls burn a core, so all waiting tests, then sleeps, 20 to 500 microseconds.
 * Every wait has the world's deadline, including MPI's own start and end (watchdog.h), and ends with a sentence that
 * names the ranks waited for and their hosts: "waited 60 s for rank 1 on host b to ...". All ranks call functions
 * marked collective in the same order; `doing` describes what a missing rank should do. Once a rank has missed one,
 * world_lost() is 1, and this rank can only report that and end all ranks. One thread.
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

/* Reads the launcher's environment, and starts MPI if there is one. deadline: seconds. *out is yours until
 * world_close(); after an error only for world_abort(); NULL: no memory. */
int world_open(struct world **out, double deadline, struct error *e);
/* Collective. The same over other participants, which world_close() ends; for tests. */
int world_over(struct world **out, struct participants *p, double deadline, struct error *e);
/* Ends the participants normally (collective), frees w. NULL is fine. */
void world_close(struct world *w);
/* Ends all ranks immediately, this one with `status`; does not return. */
_Noreturn void world_abort(struct world *w, int status);

/* Gives the ranks new numbers, used from then on here and in sentences: rank i is the one that now is order[i]. Each
 * rank must call it with the same order, while no message is on its way. Open MPI's own sentences, and the watchdog's,
 * keep the launcher's numbers. ERR_NOMEM. */
int world_renumber(struct world *w, const int *order, struct error *e);

int world_rank(const struct world *w);
int world_size(const struct world *w);
int world_one_host(const struct world *w); /* 1: all ranks share one host's memory */
int world_lost(const struct world *w);     /* 1: a rank missed a collective operation */
/* The hosts, boots and processes of the ranks, by rank. NULL without a launcher. Borrowed. */
const struct process *world_places(const struct world *w);
/* 1: that other rank is on this host, and has ended or is stopped, so those who wait for it need not be blamed. */
int world_stands(const struct world *w, int rank);
/* Of the ranks r < count with late[r] != 0, keeps those that stand, if any do: the others may be waiting for them. Not
 * once the launcher is ending the ranks (world_hurry). 1: some stand. */
int world_narrow(const struct world *w, char *late, int count);
enum { WORLD_NAME_MAX = HOST_NAME_MAX + 32 };
/* "rank 2 on host b"; alone, or before the hosts are known, "rank 0". */
void world_name(const struct world *w, int rank, char *text, size_t size);
/* Puts "rank 2 on host b: " before the sentence of that rank's error, if there are several ranks. Returns e->code. */
int world_sign(const struct world *w, int rank, struct error *e);
int world_orphaned(const struct world *w); /* 1: the launcher's process that started this rank is gone */
/* 1: this rank's output goes through a launcher on this host to a terminal. */
int world_watched(const struct world *w);
/* Sets a function to call repeatedly while this rank waits for others. NULL: none. Borrowed until the next call. */
void world_set_idle(struct world *w, void (*idle)(void *context), void *context);
double world_deadline(const struct world *w);
/* The launcher is ending the ranks, perhaps before their deadline: a wait, now or later, reports once through `say`
 * whom it waits for, and continues, for another deadline without a word. The callee may change the sentence. */
void world_hurry(struct world *w, void (*say)(void *context, struct error *sentence), void *context);

/* Collective. Each rank passes its status, and its error in e; all get the same result: OK if all are OK, else status
 * and sentence of the lowest rank that is not, which is named unless all have the same sentence. So rank 0 can report
 * for any of them. */
int world_agree(struct world *w, const char *doing, int status, struct error *e);

/* Collective. Sends rank 0's n bytes to all; named "send WHAT" in errors. */
int world_broadcast(struct world *w, void *bytes, size_t n, const char *what, struct error *e);

/* Collective. Compares `value`: ERR_ARG, with a sentence naming `what` and the ranks that differ from rank 0. */
int world_same(struct world *w, const char *doing, uint64_t value, const char *what, struct error *e);

/* Collective. all[r] (n bytes each, world_size() of them) becomes rank r's `mine`; `doing` as above. */
int world_gather(struct world *w, const void *mine, size_t n, void *all, const char *doing, struct error *e);

/* A pending message. Zeroed: none, and message_done() returns 1. */
struct message {
    uint64_t handle;
    int active, source; /* source: the sender, once a receive is done */
    int with;           /* the rank at the other end, or WORLD_ANY_RANK */
};

enum { WORLD_ANY_RANK = PARTICIPANT_ANY };
/* Messages with this tag and above are not part of a step (start, checkpoints, end), and are counted apart. */
enum { WORLD_TAG_ASIDE = 30000 };

/* Start sending or receiving n bytes (n <= INT_MAX), which belong to the message until message_done(). Messages between
 * two ranks with the same tag arrive in order. */
int world_send(struct world *w, int to, int tag, const void *bytes, size_t n, struct message *m, struct error *e);
int world_receive(struct world *w, int from, int tag, void *bytes, size_t n, struct message *m, struct error *e);
/* 1: done (or never started). 0: not yet. */
int message_done(struct world *w, struct message *m, struct error *e);
/* Cancels a receive that nobody will answer. */
void message_cancel(struct world *w, struct message *m);

/*
 * The bytes that this rank has sent to others since the start, without the headers of MPI and of the network: traffic.h
 * adds up those of all ranks.
 */
struct world_sent {
    int64_t steps;  /* in messages of steps */
    int64_t memory; /* read by that rank in memory that both share, in steps */
    int64_t aside;  /* in messages that are not part of a step */
};
const struct world_sent *world_sent(const struct world *w); /* (size), by rank; NULL without a launcher. Borrowed. */
/* Counts n bytes of this rank's shared memory that rank `reader` reads in a step. */
void world_share(struct world *w, int reader, size_t n);

/*
 * Waiting: a pause that grows, and a deadline that counts only time in which this process ran (a run stopped and
 * continued from its terminal has not waited). It calls the function of world_set_idle().
 */
struct patience {
    struct world *world;
    double limit; /* seconds after which patience_pause returns 0 */
    double begun; /* by world_ran() */
    long nanoseconds;
};
void patience_init(struct patience *p, struct world *w, double limit);
void patience_calm(struct patience *p); /* call on progress: shortens the pauses, and restarts the deadline */
int patience_pause(struct patience *p); /* sleeps; 0: the limit has passed, or world_hurry() */
int patience_spend(struct patience *p); /* the same for callers that sleep in another way */
/* 1: the time of `before` others that have the word first (places_precedence) has passed after the limit, or
 * world_hurry(). */
int patience_exceeds(const struct patience *p, int before);
/* After the limit: 1 if this rank should report that ranks r < count are late, those with late[r] != 0: who sees that
 * one of them stands, comes first, then who knows most (places_before), since of several late ones, some may
 * themselves be waiting for another. */
int patience_speaks(const struct patience *p, const char *late, int count);
/* For those who wait for `rank` of this host, which knows better who is missing while it waits itself: call
 * patience_calm() whenever it has looked for what it waits for. After the limit: 1: report it: it stands, or the time
 * of two others has passed, too. Once the launcher is ending the ranks (world_hurry) only if it stands. */
int patience_misses(const struct patience *p, int rank);
/* Sets "waited 60 s FORMAT; ending all ranks", tells the other ranks that this one reports, and returns ERR_PEER. Or
 * returns 0, and the wait continues, for another deadline without a word: world_hurry() had this reported, or another
 * rank has told that it reports; the launcher may need long to end all then. */
int patience_over(const struct patience *p, struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The clock of these waits: seconds in which this process ran, counting at most 0.1 s from one call to the next. */
double world_ran(struct world *w);

#endif
