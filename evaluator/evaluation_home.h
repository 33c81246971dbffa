/*
 * evaluation_home.h - EVAL as a directory: opened at the start, and looked after while the evaluator works. It may be
 * deleted, moved away or replaced; then it is made again with what is still known. The ledger is known whole, since it
 * is open; the points follow from it, those of the open event file with their pictures; and EVAL/best is filled from
 * the checkpoints that are still there. Pins are made anew. The event file is made again here and nowhere else, after
 * the ledger, also where it alone is gone. One thread.
 */
#ifndef EVALUATOR_EVALUATION_HOME_H
#define EVALUATOR_EVALUATION_HOME_H

#include "evaluator/evaluation_watch.h"

/* Makes EVAL, takes its lock, reads the ledger, and opens what follows from it. */
int evaluation_home_open(struct evaluation_watch *w, struct error *e);

/* Looks, once a second and before something is recorded, whether the path of the ledger still leads to the one that is
 * open, and whether the open event file is in its place. OK: so it is, or what was not was made again.
 * EVALUATION_RECORD_LATER: it cannot be, w->retry_at says when to try again; WATCH_GIVEN_UP: the same, and signalled;
 * with a sentence in e. Waits up to two seconds where the new lock is somebody else's (evaluation_lock_take()). */
int evaluation_home_check(struct evaluation_watch *w, int signalled, struct error *e);

#endif
