/*
 * training_status.h - a training from outside, by its training.json and its checkpoints: does it live, how far is it,
 * when will it be done.
 */
#ifndef TRAINER_TRAINING_STATUS_H
#define TRAINER_TRAINING_STATUS_H

#include "base/error.h"
#include "checkpoint/directory/training_state.h"

#include <stdint.h>

enum training_condition {
    CONDITION_RUNNING,
    CONDITION_FINISHED,
    CONDITION_STOPPED, /* by a signal, in order */
    CONDITION_FAILED,  /* it says so itself */
    CONDITION_DIED,    /* training.json says running, and its process is gone */
    CONDITION_SILENT,  /* it says running, but was not renewed for TRAINING_SILENT_SECONDS, and nobody knows better */
    CONDITIONS
};
enum { TRAINING_SILENT_SECONDS = 60 }; /* renewed every 10; another host's clock and cache may be behind */

extern const char *const training_condition_names[CONDITIONS]; /* "running", ... */

struct training_status {
    enum training_condition condition;
    struct training_state state;
    enum process_state process; /* of its process */
    double updated_age, stepped_age; /* seconds; negative: not known */
    double left;                /* seconds until max_steps; negative: not known, or it does not run */
    int64_t checkpoint;         /* step of the newest checkpoint, -1: none */
};

/* Pure: `process` is what is known of the state's process, which counts only where there is one (pid not 0); now is
 * wall time. Fills all of *out but the checkpoint. */
void training_status_judge(const struct training_state *state, enum process_state process, double now,
                           struct training_status *out);

/* 1 read, 0: no training.json there, < 0: none that can be read. */
int training_status_read(const char *checkpoint_directory, double now, struct training_status *out, struct error *e);

#endif
