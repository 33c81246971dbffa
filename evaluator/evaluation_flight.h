/*
 * evaluation_flight.h - one checkpoint on its way through an evaluation: from the queue, through a slot of the runner,
 * to its line in the ledger. Its job points into it, so it stays where it is. One thread.
 */
#ifndef EVALUATOR_EVALUATION_FLIGHT_H
#define EVALUATOR_EVALUATION_FLIGHT_H

#include "base/error.h"
#include "evaluator/ledger.h"
#include "evaluator/queue.h"
#include "evaluator/runner.h"

enum evaluation_flight_state {
    FLIGHT_RUNNING,
    FLIGHT_LANDED,   /* the result is there */
    FLIGHT_PREPARED, /* its place in the curves is decided; points may have been handed to the event file */
    FLIGHT_WRITTEN,  /* its points are on the disk, its line in the ledger is not */
};

struct evaluation_flight {
    enum evaluation_flight_state state;
    double begin;                 /* monotonic */
    struct queue_item item;       /* files held open */
    char *directory;              /* where its files are: the watched directory, or that of its pin; owned */
    char *path, *witness;         /* of the job; owned */
    struct runner_job job;        /* points into what stands here */
    struct evaluation evaluation; /* once landed */
    struct ledger_record record;  /* its metrics are its own, with best_NAME among them once prepared */
};

/* Begins now. directory (the watched one) and eval_directory are borrowed; index: of the job. On OK the item is the
 * flight's, and *out yours until evaluation_flight_free(); on ERR_NOMEM, ERR_ARG (a path too long) the item stays the
 * caller's. */
int evaluation_flight_new(struct evaluation_flight **out, const struct queue_item *item, const char *directory,
                          const char *eval_directory, int64_t index, struct error *e);
void evaluation_flight_free(struct evaluation_flight *f); /* closes its files; a pin stays */

/* Opens the files of one that waited pinned. */
int evaluation_flight_reopen(struct evaluation_flight *f, struct error *e);

/* Fills the record: with RUNNER_DONE by *v, which is the flight's then; else why is the reason. */
void evaluation_flight_land(struct evaluation_flight *f, enum runner_state state, struct evaluation *v,
                            const struct error *why);

/* An evaluation may leave its results in the directory it evaluated. If nothing but new files came, that does not make
 * the checkpoint new: 1, and the digest with them. If a file changed meanwhile, it was overwritten, and is new. */
int evaluation_flight_results(const struct evaluation_flight *f, uint64_t *digest);

#endif
