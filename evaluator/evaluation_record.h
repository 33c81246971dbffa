/*
 * evaluation_record.h - the recording half of evaluation_watch.h: what has become of checkpoints goes into the event
 * files, the ledger and EVAL/best, in the order of the steps. One thread.
 */
#ifndef EVALUATOR_EVALUATION_RECORD_H
#define EVALUATOR_EVALUATION_RECORD_H

#include "evaluator/evaluation_watch.h"

enum { EVALUATION_RECORD_LATER = 3 }; /* a disk failed; w->retry_at says when to try again */

/* Takes in a line of the ledger, read or just written. */
int evaluation_record_note(struct evaluation_watch *w, const struct ledger_record *r, struct error *e);
/* Says what followed from the best; rc and trouble are of evaluation_best.h. */
void evaluation_record_best(const struct evaluation_watch *w, int rc, const struct error *trouble);

/* Runs the command of an event. r: what it is about, NULL at the end. */
void evaluation_record_post(struct evaluation_watch *w, enum hook_event event, const struct ledger_record *r,
                            const char *reason);

/* What the watcher reported; and all flights that have landed, up to the first that has not. OK,
 * EVALUATION_RECORD_LATER, or as evaluation_watch_tick(). */
int evaluation_record_pending(struct evaluation_watch *w, int signalled, struct error *e);
int evaluation_record_flights(struct evaluation_watch *w, int signalled, struct error *e);

#endif
