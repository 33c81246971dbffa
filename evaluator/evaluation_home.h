/*
 * evaluation_home.h - opens the eval directory at the start and restores it while the evaluator works. If EVAL is
 * deleted, moved or replaced, it is made again: the ledger in full, because it is open; points from the ledger, those
 * of the open event file with their pictures; EVAL/best from the checkpoints that still exist; and new pins. Only this
 * module makes the event file again, after the ledger, even if nothing else is gone. One thread.
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
    HOME_OTHER,   /* the ledger's path leads to somebody else's file, as e says */
    HOME_UNKNOWN, /* it cannot be examined; e says why */
};
/* Checks whether the ledger's path still leads to the open ledger. */
enum evaluation_home evaluation_home_look(const char *ledger, const struct evaluation_lock_held *held, struct error *e);

/* Makes EVAL with its lock and a new ledger that has the lines of the open one. Waits up to two seconds while somebody
 * else holds the lock (evaluation_lock_take()). */
int evaluation_home_move(const struct evaluation_watch_settings *s, const struct watch_log *says, struct ledger *l,
                         struct evaluation_lock_held *held, const char *path, struct error *e);

/* Reads that ledger: writes its points to the event files that are missing, restores the open one as it was, and gives
 * its lines to the keeper. unrecorded: points of the open one that are not in the ledger. *count: how many points there
 * are now. */
int evaluation_home_points(const struct evaluation_watch_settings *s, const char *ledger, struct evaluation_log *points,
                           struct evaluation_best *keeper, size_t unrecorded, int64_t *count, struct error *e);

#endif
