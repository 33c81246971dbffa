/*
 * evaluation_home.h - EVAL as a directory: opened at the start, and looked after while the evaluator works. It may be
 * deleted, moved away or replaced; then it is made again with what is still known. The ledger is known whole, since it
 * is open; the points follow from it, those of the open event file with their pictures; and EVAL/best is filled from
 * the checkpoints that are still there. Pins are made anew. One thread.
 */
#ifndef EVALUATOR_EVALUATION_HOME_H
#define EVALUATOR_EVALUATION_HOME_H

#include "evaluator/evaluation_watch.h"

/* Makes EVAL, takes its lock, reads the ledger, and opens what follows from it. */
int evaluation_home_open(struct evaluation_watch *w, struct error *e);

/* Looks, once a second and before something is recorded, whether the path of the ledger still leads to the one that is
 * open. OK: it does, or EVAL was made again. EVALUATION_RECORD_LATER: it cannot be, w->retry_at says when to try again;
 * WATCH_GIVEN_UP: the same, and signalled; with a sentence in e. */
int evaluation_home_check(struct evaluation_watch *w, int signalled, struct error *e);

#endif
