/*
 * evaluation_estimate.h - when an evaluator will be done, from how fast the training saves and how fast checkpoints are
 * evaluated. Pure.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_ESTIMATE_H
#define EVALUATOR_RECORD_EVALUATION_ESTIMATE_H

#include <stdint.h>

struct evaluation_facts {
    double waiting;          /* checkpoints that wait or are being evaluated */
    double each;             /* seconds an evaluation takes; 0: not known */
    double rate;             /* evaluations a second lately; 0: not known. Several may run at a time */
    double steps_per_second; /* of the training; 0: not known */
    double steps_between;    /* checkpoints; 0: not known */
    double newest_age;       /* seconds since the newest checkpoint was written; negative: not known */
    int64_t newest_step;     /* -1: none */
    int64_t last_step;       /* of the training; -1: not known */
    int training_over;       /* no more checkpoints come */
};

/* Seconds until the last checkpoint is evaluated; -1: that cannot be told. */
double evaluation_estimate(const struct evaluation_facts *f);

#endif
