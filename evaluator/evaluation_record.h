/*
 * evaluation_record.h - the recording half of evaluation_watch.h: writes the outcomes of checkpoints to the event
 * files, the ledger and EVAL/best, in the order of their steps. One thread.
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

/* besides OK and errors; all but the last two put a sentence in e */
enum {
    EVALUATION_STOPPED = 1, /* a checkpoint failed, with --strict */
    EVALUATION_GIVEN_UP,    /* signalled, and the disk still fails */
    EVALUATION_LATER,       /* a disk failed; it is tried again when evaluation_record_facts() says so */
    EVALUATION_MADE_AGAIN,  /* evaluation_record_check() */
};

struct evaluation_record;

/* Makes EVAL, locks it, reads the ledger, and opens everything that depends on it. */
int evaluation_record_open(struct evaluation_record **out, const struct evaluation_watch_settings *s,
                           const struct watch_log *says, struct queue *queue, struct error *e);
void evaluation_record_close(struct evaluation_record *r, const char *why);

/* a value; what it points to is borrowed until the record is closed */
struct evaluation_record_facts {
    const struct ledger_summary *summary;   /* of the ledger */
    const struct evaluation_series *series; /* newest point of each curve */
    size_t failed, gone, untried;           /* checkpoints, by the newest line of each */
    size_t same_failures;                   /* so many, the newest of this process, failed in the same way */
    int64_t last_step;                      /* of the newest line; -1: none */
    int64_t recalled_step;                  /* the highest of the lines that were there at the start; -1: none */
    size_t pending;                         /* outcomes still to be recorded, not counting flights */
    int retries;                            /* 1: a disk failed, and is tried again */
    double due;                             /* seconds until the retry, or else until there is something to do */
};
struct evaluation_record_facts evaluation_record_facts(const struct evaluation_record *r);
/* The summary alone, which is asked for often. */
const struct ledger_summary *evaluation_record_summary(const struct evaluation_record *r);

/* Queues an outcome for evaluation_record_pending(). Returns its line, borrowed until then; NULL: out of memory, which
 * that call returns. */
const struct ledger_record *evaluation_record_outcome(struct evaluation_record *r,
                                                      const struct checkpoint_identity *checkpoint,
                                                      enum ledger_status status, const char *reason);
/* The checkpoint can be read, and already has its line. */
void evaluation_record_readable(struct evaluation_record *r, const char *name);
/* Records the queued outcomes, up to the first that cannot be recorded. */
int evaluation_record_pending(struct evaluation_record *r, int signalled, struct error *e);

/* A command was mended: forgets that those are known that failed with another one, and calls found() for each. Returns
 * how many. No failures count as the same then. */
size_t evaluation_record_mended(struct evaluation_record *r, uint64_t command,
                                void (*found)(void *context, const char *name), void *context);
/* Queues the outcome "untried", unless that is the newest line of the checkpoint. */
void evaluation_record_untried(struct evaluation_record *r, const struct checkpoint_identity *checkpoint,
                               const char *reason);

/* begin: this flight may become the best. forget: no longer, because it was recorded or will not be. */
void evaluation_record_begin(struct evaluation_record *r, struct evaluation_flight *f);
void evaluation_record_forget(struct evaluation_record *r, const struct checkpoint_identity *checkpoint);
/* Records a landed flight: its points to the event file, synced, then one line to the ledger, synced. Call again after
 * EVALUATION_LATER. *done: its line is in the ledger. */
int evaluation_record_flight(struct evaluation_record *r, struct evaluation_flight *f, int signalled, int *done,
                             struct error *e);

/* Checks, once a second and before anything is recorded, that the ledger's path still leads to the open ledger and that
 * the open event file is in its place. EVALUATION_MADE_AGAIN: EVAL was made again, except for pins and what begins with
 * each flight. first: the flight to be recorded next, or NULL. */
int evaluation_record_check(struct evaluation_record *r, struct evaluation_flight *first, int signalled,
                            struct error *e);
/* The next check is due at once. */
void evaluation_record_check_soon(struct evaluation_record *r);

/* Runs the command of --on-end. */
void evaluation_record_end(struct evaluation_record *r, const char *reason);

#endif
