/*
 * evaluation_status.h - the state of an eval directory as seen from outside, whether or not an evaluator works there:
 * from its ledger, its lock, its work.json, and training.json beside the checkpoints. Changes nothing. Thread-safe.
 */
#ifndef EVALUATOR_EVALUATION_STATUS_H
#define EVALUATOR_EVALUATION_STATUS_H

#include "base/error.h"
#include "checkpoint/directory/training_state.h"
#include "evaluator/record/evaluation_lock.h"
#include "evaluator/record/evaluation_work.h"
#include "evaluator/record/ledger.h"
#include "evaluator/score/evaluation.h"

#include <stddef.h>
#include <stdint.h>

enum { STATUS_RATE_OVER = 20 }; /* rates cover this many of the last evaluations */

struct evaluation_status {
    enum evaluation_lock_state holder;
    struct evaluation_lock lock; /* all empty with LOCK_NONE */
    size_t done;                 /* evaluations */
    size_t failed, gone;         /* checkpoints whose newest line says so (ledger.h) */
    size_t odd_lines;            /* of the ledger, skipped; not counting a cut last line */
    int has_work, has_training;
    struct evaluation_work work; /* of the evaluator named in the lock */
    struct training_state training;
    int64_t queued;      /* checkpoints that wait; if no evaluator says, those in the directory whose
                                       names are not in the ledger. -1: not known */
    int64_t newest_step; /* of the newest checkpoint; -1: none */
    int64_t behind;      /* steps from the last evaluated to the newest one; -1: not known */
    int has_best;        /* the metric is that of the newest line with a best_NAME */
    char best_metric[EVALUATION_NAME_MAX];
    double best_value;
    struct checkpoint_identity best; /* step -1: its line is missing */
    struct checkpoint_identity last; /* of the newest line; step -1: none */
    double last_time;                /* wall seconds; 0: none */
    double rate;                     /* evaluations per hour; 0: not known */
    double each;                     /* seconds per evaluation; 0: not known */
    int64_t target;                  /* the last step, from --until-step or training.json; -1: not known */
    double seconds_left;             /* until it is done; -1: not known, or not running */
    char last_reason[480];           /* of the newest "failed" or "gone" line; "": none */
};

/* "running", "ended", "died", "elsewhere", "unknown". */
const char *evaluation_status_state(const struct evaluation_status *s);

/* now: wall seconds. ERR_IO: there is neither a ledger nor a lock, or they cannot be read. */
int evaluation_status_read(const char *eval_directory, double now, struct evaluation_status *out, struct error *e);

#endif
