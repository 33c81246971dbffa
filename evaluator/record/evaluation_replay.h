/*
 * evaluation_replay.h - writes the points of an eval directory again from its ledger alone: same tags, steps, times and
 * runs; scalars only, since pictures, curves and texts are not in the ledger. One thread.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_REPLAY_H
#define EVALUATOR_RECORD_EVALUATION_REPLAY_H

#include "base/error.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

/* fill in the first block, run = -1, the rest zero */
struct evaluation_replay {
    const char *directory; /* of run 0 */
    const struct evaluation_tags *tags;
    int missing;     /* 1: only the runs that have no event files */
    const char *own; /* missing: NULL, or the name of a file in the directory of own_run to ignore; it is */
    int64_t own_run; /* ... deleted before another, with earlier points, is made there */

    struct evaluation_log *log;
    int64_t run, points;  /* run: that of this pass; -1: before the first */
    int64_t wanted, runs; /* in each pass one run is written: this one, of so many found so far */
    int passed;           /* that run is skipped: it has event files, and missing is 1 */
};

/* Reads the ledger once for each run, with `visit`, which calls evaluation_replay_record(), and its context. */
int evaluation_replay_ledger(struct evaluation_replay *p, const char *ledger, ledger_visit *visit, void *context,
                             struct error *e);
/* A ledger_visit; context is the struct. */
int evaluation_replay_record(void *context, const struct ledger_record *r, struct error *e);
/* Call after the last record, also after an error: syncs and closes. */
int evaluation_replay_end(struct evaluation_replay *p, struct error *e);

/* 1: the directory has event files. */
int evaluation_replay_present(const char *directory);
/* 1: this is a name of event files. */
int evaluation_replay_is_event_file(const char *name);

#endif
