/*
 * evaluation_estimate.h - estimates when an evaluator will be done, from how fast checkpoints are saved and evaluated.
 * Pure.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_ESTIMATE_H
#define EVALUATOR_RECORD_EVALUATION_ESTIMATE_H

#include <stdint.h>

struct evaluation_facts {
    double waiting;          /* checkpoints waiting or being evaluated */
    double each;             /* seconds per evaluation; 0: not known */
    double rate;             /* recent evaluations per second, of all jobs; 0: not known */
    double steps_per_second; /* of the training; 0: not known */
    double steps_between;    /* two checkpoints; 0: not known */
    double newest_age;       /* seconds since the newest checkpoint was written; negative: not known */
    int64_t newest_step;     /* -1: none */
    int64_t last_step;       /* of the training; -1: not known */
    int training_over;       /* no more checkpoints come */
};

/* Seconds until the last checkpoint is evaluated; -1: not known. */
double evaluation_estimate(const struct evaluation_facts *f);

#endif
