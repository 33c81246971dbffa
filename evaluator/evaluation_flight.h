/*
 * evaluation_flight.h - one checkpoint that is being evaluated: from the queue, through a slot of the runner, to its
 * line in the ledger. Its job points into the struct, so the struct must not move. One thread.
 */
#ifndef EVALUATOR_EVALUATION_FLIGHT_H
#define EVALUATOR_EVALUATION_FLIGHT_H

#include "base/error.h"
#include "evaluator/record/ledger.h"
#include "evaluator/score/runner.h"
#include "evaluator/watch/queue.h"

enum evaluation_flight_state {
    FLIGHT_RUNNING,
    FLIGHT_LANDED,   /* its result has arrived */
    FLIGHT_PREPARED, /* its run is chosen; some points may be in the event file */
    FLIGHT_WRITTEN,  /* its points are on disk, its ledger line is not */
};

struct evaluation_flight;

/* Starts the clock. directory (the watched one) and eval_directory are borrowed; index: as in runner_job. On OK the
 * flight owns the item, and *out is yours until evaluation_flight_free(). On ERR_NOMEM or ERR_ARG (a path too long) the
 * item stays the caller's. */
int evaluation_flight_new(struct evaluation_flight **out, const struct queue_item *item, const char *directory,
                          const char *eval_directory, int64_t index, struct error *e);
void evaluation_flight_free(struct evaluation_flight *f); /* closes its files; keeps its pin */

/* All borrowed: the item, with its files held open; the runner's job, which points into the flight; its ledger line,
 * which others complete; and, once it has landed, what can be drawn of its scores, or NULL. */
struct queue_item *evaluation_flight_item(struct evaluation_flight *f);
const struct runner_job *evaluation_flight_job(const struct evaluation_flight *f);
struct ledger_record *evaluation_flight_record(struct evaluation_flight *f);
const struct evaluation_detail *evaluation_flight_detail(const struct evaluation_flight *f);
/* Where its files are: the watched directory, or its pin's. */
const char *evaluation_flight_directory(const struct evaluation_flight *f);

enum evaluation_flight_state evaluation_flight_state(const struct evaluation_flight *f);
void evaluation_flight_advance(struct evaluation_flight *f, enum evaluation_flight_state state);

/* Opens the files of a checkpoint that waited pinned. */
int evaluation_flight_reopen(struct evaluation_flight *f, struct error *e);

/* Fills the record: with RUNNER_DONE from *v, which it takes over; otherwise with `why` as the reason. */
void evaluation_flight_land(struct evaluation_flight *f, enum runner_state state, struct evaluation *v,
                            const struct error *why);

enum evaluation_flight_files {
    FLIGHT_FILES_SAME,    /* as they were found; or they are gone, so nobody can tell */
    FLIGHT_FILES_GREW,    /* files were added, for example results written by the evaluation */
    FLIGHT_FILES_LACK,    /* they could not be read now: no memory, no descriptors, error_may_pass() */
    FLIGHT_FILES_GOING,   /* some are missing, the others are as they were: it is being deleted */
    FLIGHT_FILES_CHANGED, /* a file was changed or removed: a reader by path cannot be trusted */
};
/* Compares the files of a flight, whose checkpoint is open, with those found. *digest: their digest now if they grew or
 * changed, 0 if they are not whole. e: why they cannot be read. */
enum evaluation_flight_files evaluation_flight_files(const struct evaluation_flight *f, uint64_t *digest,
                                                     struct error *e);

#endif
