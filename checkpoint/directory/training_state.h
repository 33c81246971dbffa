/*
 * training_state.h - CKPT/training.json: what the trainer says of itself to whoever watches. Replaced by rename, while
 * it runs every ten seconds at least, within long steps too.
 * {"state":"running"|"finished"|"stopped"|"failed","host","pid","process_start","boot","global_step","max_steps",
 *  "run_option","world_size","started","updated"}; times in seconds since 1970; host to boot are rank 0's process, told
 * from others as process.h does it. "finished" and "stopped" are written after the last checkpoint; stopped: a signal
 * ended it before max_steps. Besides, where they are known: "reason", a sentence, when the training ended before
 * max_steps; "signal", "SIGINT" or "SIGTERM", when it was that; "stepped", when the newest step ended, and
 * "steps_per_second" and "images_per_second", of all workers, as they were lately; and its settings: "model","data",
 * "optimizer","batch_size" (of a worker),"learning_rate" (at the start). Readers take what they know and pass over
 * other members.
 */
#ifndef CHECKPOINT_DIRECTORY_TRAINING_STATE_H
#define CHECKPOINT_DIRECTORY_TRAINING_STATE_H

#include "base/error.h"
#include "base/process.h"

#include <stdint.h>

#define TRAINING_STATE_FILE "training.json"

struct training_state {
    char state[16], run_option[16];
    struct process process; /* of rank 0; pid 0: not known */
    char reason[400], signal[16], model[64], data[64], optimizer[16]; /* "": not known */
    int64_t batch_size;                                               /* 0: not known, as the next */
    double learning_rate;
    int64_t global_step, max_steps, world_size;
    double started, updated;
    double stepped, steps_per_second, images_per_second; /* 0: not known */
};

/* 1 read, 0 the file is not there, < 0 unreadable or not such a file (a watcher takes that as "not known"). */
int training_state_read(const char *checkpoint_directory, struct training_state *out, struct error *e);
int training_state_write(const char *checkpoint_directory, const struct training_state *state, struct error *e);

/* For a rank that outlives rank 0: where the file says "running" of a process that was on this host and is gone, makes
 * it say "failed", and why. 1: it does; 0: it says something else, or the process may live. */
int training_state_fail_dead(const char *checkpoint_directory, const char *reason);

#endif
