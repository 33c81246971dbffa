/*
 * evaluation_record.h - what has become of the checkpoints of one directory, in its eval directory: lock, ledger, event
 * files, EVAL/best, and the commands of --on-best, --on-failure and --on-end. It is looked after while the evaluator
 * works: EVAL may be deleted, moved away or replaced; then it is made again with what is still known. The event file is
 * made again here and nowhere else, after the ledger, also where it alone is gone. One thread.
 */
#ifndef EVALUATOR_EVALUATION_RECORD_H
#define EVALUATOR_EVALUATION_RECORD_H

#include "base/error.h"
#include "evaluator/evaluation_flight.h"
#include "evaluator/evaluation_settings.h"
#include "evaluator/record/evaluation_prom.h"
#include "evaluator/watch/queue.h"
#include "evaluator/watch_log.h"

#include <stddef.h>
#include <stdint.h>

enum { /* beside OK and errors, with a sentence in e but for the last two */
    EVALUATION_STOPPED = 1, /* a checkpoint failed, and --strict */
    EVALUATION_GIVEN_UP,    /* signalled, and the disk still fails */
    EVALUATION_LATER,       /* a disk failed; it is tried again when evaluation_record_due() says so */
    EVALUATION_MADE_AGAIN,  /* evaluation_record_check() */
};

struct evaluation_record;

/* Makes EVAL, takes its lock, reads the ledger, and opens what follows from it. The queue remembers what needs no
 * evaluation. s and says are borrowed. On OK *out is yours until evaluation_record_close(), which says why in the lock
 * file; NULL is fine. */
int evaluation_record_open(struct evaluation_record **out, const struct evaluation_watch_settings *s,
                           const struct watch_log *says, struct queue *queue, struct error *e);
void evaluation_record_close(struct evaluation_record *r, const char *why);

/* Borrowed. The ledger in short, and what the curves ended in. */
const struct ledger_summary *evaluation_record_summary(const struct evaluation_record *r);
const struct evaluation_series *evaluation_record_series(const struct evaluation_record *r);
/* How many checkpoints ended so, by the newest line of each. */
size_t evaluation_record_count(const struct evaluation_record *r, enum ledger_status status);
/* The step of the newest line; and the highest of the lines that were there at the start. -1: none. */
int64_t evaluation_record_last_step(const struct evaluation_record *r);
int64_t evaluation_record_recalled_step(const struct evaluation_record *r);

/* To be recorded by evaluation_record_pending(). The line is borrowed until then; NULL: want of memory, which that
 * returns. */
const struct ledger_record *evaluation_record_outcome(struct evaluation_record *r,
                                                      const struct checkpoint_identity *checkpoint,
                                                      enum ledger_status status, const char *reason);
/* That checkpoint can be read, and has its line. */
void evaluation_record_readable(struct evaluation_record *r, const char *name);
/* What evaluation_record_outcome() was told, up to the first that cannot be recorded. */
int evaluation_record_pending(struct evaluation_record *r, int signalled, struct error *e);
size_t evaluation_record_pending_count(const struct evaluation_record *r);

/* What is the best may come from this flight, or not any more: it is not recorded, or was. */
void evaluation_record_begin(struct evaluation_record *r, struct evaluation_flight *f);
void evaluation_record_forget(struct evaluation_record *r, const struct checkpoint_identity *checkpoint);
/* One that has landed: points in the event file and down to the disk, then one line in the ledger and down to the disk.
 * Again after EVALUATION_LATER. *done: its line is in the ledger. */
int evaluation_record_flight(struct evaluation_record *r, struct evaluation_flight *f, int signalled, int *done,
                             struct error *e);

/* Once a second and before something is recorded: does the path of the ledger still lead to the one that is open, and
 * is the open event file in its place? EVALUATION_MADE_AGAIN: EVAL is, but for pins and what begins with each flight.
 * first: the flight that is recorded next, or NULL. */
int evaluation_record_check(struct evaluation_record *r, struct evaluation_flight *first, int signalled,
                            struct error *e);
/* The next check is due at once. */
void evaluation_record_check_soon(struct evaluation_record *r);

/* 1: the disk works, and nothing is pending. */
int evaluation_record_idle(const struct evaluation_record *r);
/* Seconds until there is something to do; of a disk that failed until it is tried again. */
double evaluation_record_due(const struct evaluation_record *r);
/* 1: a disk failed, and it is not time to try again. */
int evaluation_record_waits(const struct evaluation_record *r);

/* Runs the command of --on-end. */
void evaluation_record_end(struct evaluation_record *r, const char *reason);

#endif
