/*
 * evaluation_home.h - opens the eval directory at the start and restores it while the evaluator works. EVAL may be
 * deleted, moved or replaced; then it is made again from what is still known. The ledger is complete, since it is open.
 * The points are written from the ledger, and those of the open event file with their pictures. EVAL/best is filled
 * from the checkpoints that still exist. Pins are made anew. Only this module makes the event file again, after the
 * ledger, also when only the event file is gone. One thread.
 */
#ifndef EVALUATOR_EVALUATION_HOME_H
#define EVALUATOR_EVALUATION_HOME_H

#include "base/error.h"
#include "evaluator/evaluation_settings.h"
#include "evaluator/keep/evaluation_best.h"
#include "evaluator/record/evaluation_lock.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/ledger.h"
#include "evaluator/watch_log.h"

#include <stdint.h>

/* Makes EVAL and takes its lock. On OK *held is yours until evaluation_home_leave(). */
int evaluation_home_take(const struct evaluation_watch_settings *s, const struct watch_log *says,
                         struct evaluation_lock_held *held, struct error *e);
void evaluation_home_leave(const struct evaluation_watch_settings *s, const struct evaluation_lock_held *held,
                           const char *why);

enum evaluation_home {
    HOME_THERE,
    HOME_GONE,    /* and can be made again */
    HOME_OTHER,   /* the path of the ledger leads to somebody else's file, which e says */
    HOME_UNKNOWN, /* it cannot be looked at, e */
};
/* Does the path of the ledger still lead to the one that is open? */
enum evaluation_home evaluation_home_look(const char *ledger, const struct evaluation_lock_held *held, struct error *e);

/* Makes EVAL with a new ledger with the lines of the open one, and its lock. Waits up to two seconds where that is
 * somebody else's (evaluation_lock_take()). */
int evaluation_home_move(const struct evaluation_watch_settings *s, const struct watch_log *says, struct ledger *l,
                         struct evaluation_lock_held *held, const char *path, struct error *e);

/* Reads that ledger again: its points into the event files that are missing, the open one as it is, and its lines into
 * the keeper. unrecorded: points of the open one that are not in the ledger. *count: how many points are there now. */
int evaluation_home_points(const struct evaluation_watch_settings *s, const char *ledger, struct evaluation_log *points,
                           struct evaluation_best *keeper, size_t unrecorded, int64_t *count, struct error *e);

#endif
