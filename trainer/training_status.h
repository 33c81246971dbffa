/*
 * training_status.h - the state of a training as seen from outside, from its training.json and its checkpoints: whether
 * it lives, how far it is, and when it will be done.
 */
#ifndef TRAINER_TRAINING_STATUS_H
#define TRAINER_TRAINING_STATUS_H

#include "base/error.h"
#include "checkpoint/directory/training_state.h"

#include <stdint.h>

enum training_condition {
    CONDITION_RUNNING,
    CONDITION_FINISHED,
    CONDITION_STOPPED, /* by a signal, everything saved */
    CONDITION_FAILED,  /* according to training.json */
    CONDITION_DIED,    /* training.json says running, but its process is gone */
    CONDITION_SILENT,  /* it says running, but was not renewed for TRAINING_SILENT_SECONDS; state unknown */
    CONDITIONS
};
enum { TRAINING_SILENT_SECONDS = 60 }; /* renewed every 10; another host's clock and cache may be behind */

extern const char *const training_condition_names[CONDITIONS]; /* "running", ... */

struct training_status {
    enum training_condition condition;
    struct training_state state;
    enum process_state process;      /* of its process */
    double updated_age, stepped_age; /* seconds; negative: not known */
    double left;                     /* seconds until max_steps; negative: not known, or not running */
    int64_t checkpoint;              /* step of the newest checkpoint, -1: none */
};

/* Pure: `process` is the state's process, considered only if it has one (pid not 0); now is wall time. Fills all of
 * *out except the checkpoint. */
void training_status_judge(const struct training_state *state, enum process_state process, double now,
                           struct training_status *out);

/* 1: read, 0: there is no training.json, < 0: it cannot be read. */
int training_status_read(const char *checkpoint_directory, double now, struct training_status *out, struct error *e);

#endif
