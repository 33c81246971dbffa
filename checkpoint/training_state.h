/*
 * training_state.h - CKPT/training.json: what the trainer says of itself to whoever watches. Replaced by rename.
 * {"state":"running"|"finished"|"stopped"|"failed","host","pid","global_step","max_steps","run_option","world_size",
 *  "started","updated"}; times in seconds since 1970. "finished" and "stopped" are written after the last checkpoint;
 * stopped: a signal ended it before max_steps. Besides, where they are known: "reason", a sentence, when the training
 * ended before max_steps; "signal", "SIGINT" or "SIGTERM", when it was that; and its settings: "model","data",
 * "optimizer","batch_size" (of a worker),"learning_rate" (at the start).
 */
#ifndef CHECKPOINT_TRAINING_STATE_H
#define CHECKPOINT_TRAINING_STATE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

#define TRAINING_STATE_FILE "training.json"

struct training_state {
    char state[16], host[65], run_option[16];
    char reason[400], signal[16], model[64], data[64], optimizer[16]; /* "": not known */
    int64_t batch_size;                                               /* 0: not known, as the next */
    double learning_rate;
    int64_t pid, global_step, max_steps, world_size;
    double started, updated;
};

/* 1 read, 0 the file is not there, < 0 unreadable or not such a file (a watcher takes that as "not known"). */
int training_state_read(const char *checkpoint_directory, struct training_state *out, struct error *e);
int training_state_write(const char *checkpoint_directory, const struct training_state *state, struct error *e);

/* Appends the text of such a file. */
void training_state_format(const struct training_state *state, struct buffer *out);

#endif
