/*
 * evaluation_status.h - what can be said of an eval directory from outside, whether an evaluator works there or not:
 * from its ledger, its lock, its work.json, and training.json beside the checkpoints. Nothing is changed. Thread-safe.
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

enum { STATUS_RATE_OVER = 20 }; /* rates are over so many of the last evaluations */

struct evaluation_status {
    enum evaluation_lock_state holder;
    struct evaluation_lock lock;    /* all empty with LOCK_NONE */
    size_t done;                    /* evaluations */
    size_t failed, gone;            /* checkpoints of which that is the newest line (outcomes.h) */
    size_t odd_lines;               /* of the ledger, passed over; a cut last line is none */
    int has_work, has_training;
    struct evaluation_work work;    /* of the evaluator that the lock names */
    struct training_state training;
    int64_t queued;                 /* checkpoints that wait; where no evaluator says it, those in the directory of
                                       whose names the ledger knows nothing. -1: not known */
    int64_t newest_step;            /* of the newest checkpoint; -1: none */
    int64_t behind;                 /* steps from the last evaluated to the newest one; -1: not known */
    int has_best;                   /* the newest line that has a best_NAME says which metric */
    char best_metric[EVALUATION_NAME_MAX];
    double best_value;
    struct checkpoint_identity best; /* step -1: the line it comes from is not there */
    struct checkpoint_identity last; /* of the newest line; step -1: none */
    double last_time;               /* wall seconds; 0: none */
    double rate;                    /* evaluations an hour; 0: not known */
    double each;                    /* seconds an evaluation takes; 0: not known */
    int64_t target;                 /* the step with which it ends: of --until-step or training.json; -1: not known */
    double seconds_left;            /* until it is done; -1: not known, or it does not run */
    char last_reason[480];          /* of the newest line that is not done, where any failed or is gone; "" */
};

/* "running", "ended", "died", "elsewhere", "unknown". */
const char *evaluation_status_state(const struct evaluation_status *s);

/* now: wall seconds. ERR_IO: there is no ledger and no lock, or they cannot be read. */
int evaluation_status_read(const char *eval_directory, double now, struct evaluation_status *out, struct error *e);

#endif
