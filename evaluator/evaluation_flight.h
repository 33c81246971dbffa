/*
 * evaluation_flight.h - one checkpoint on its way through an evaluation: from the queue, through a slot of the runner,
 * to its line in the ledger. Its job points into it, so it stays where it is. One thread.
 */
#ifndef EVALUATOR_EVALUATION_FLIGHT_H
#define EVALUATOR_EVALUATION_FLIGHT_H

#include "base/error.h"
#include "evaluator/record/ledger.h"
#include "evaluator/score/runner.h"
#include "evaluator/watch/queue.h"

enum evaluation_flight_state {
    FLIGHT_RUNNING,
    FLIGHT_LANDED,   /* the result is there */
    FLIGHT_PREPARED, /* its place in the curves is decided; points may have been handed to the event file */
    FLIGHT_WRITTEN,  /* its points are on the disk, its line in the ledger is not */
};

struct evaluation_flight;

/* Begins now. directory (the watched one) and eval_directory are borrowed; index: of the job. On OK the item is the
 * flight's, and *out yours until evaluation_flight_free(); on ERR_NOMEM, ERR_ARG (a path too long) the item stays the
 * caller's. */
int evaluation_flight_new(struct evaluation_flight **out, const struct queue_item *item, const char *directory,
                          const char *eval_directory, int64_t index, struct error *e);
void evaluation_flight_free(struct evaluation_flight *f); /* closes its files; a pin stays */

/* Borrowed, all of them. The item, files held open; the runner's job, which points into the flight; its line in the
 * ledger, which others fill in further; what there is to draw of its scores once it has landed, or NULL. */
struct queue_item *evaluation_flight_item(struct evaluation_flight *f);
const struct runner_job *evaluation_flight_job(const struct evaluation_flight *f);
struct ledger_record *evaluation_flight_record(struct evaluation_flight *f);
const struct evaluation_detail *evaluation_flight_detail(const struct evaluation_flight *f);
/* Where its files are: the watched directory, or that of its pin. */
const char *evaluation_flight_directory(const struct evaluation_flight *f);

enum evaluation_flight_state evaluation_flight_state(const struct evaluation_flight *f);
void evaluation_flight_advance(struct evaluation_flight *f, enum evaluation_flight_state state);

/* Opens the files of one that waited pinned. */
int evaluation_flight_reopen(struct evaluation_flight *f, struct error *e);

/* Fills the record: with RUNNER_DONE by *v, which is the flight's then; else why is the reason. */
void evaluation_flight_land(struct evaluation_flight *f, enum runner_state state, struct evaluation *v,
                            const struct error *why);

enum evaluation_flight_files {
    FLIGHT_FILES_SAME,    /* as they were found; or nothing can be said, since they are gone */
    FLIGHT_FILES_GREW,    /* new files came, as when an evaluation leaves its results in the directory it evaluated */
    FLIGHT_FILES_LACK,    /* they could not be read for want of memory or descriptors */
    FLIGHT_FILES_CHANGED, /* a file changed or went: whoever read them by their path read who knows what */
};
/* What became of the files of a flight whose checkpoint is open; *digest is theirs now where they grew or changed, 0:
 * not whole. e: why they cannot be read. */
enum evaluation_flight_files evaluation_flight_files(const struct evaluation_flight *f, uint64_t *digest,
                                                     struct error *e);

#endif
