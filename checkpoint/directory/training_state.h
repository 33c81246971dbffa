/*
 * training_state.h - CKPT/training.json: what the trainer tells its watchers. Replaced by rename, at least every ten
 * seconds while it runs, even within long steps.
 * {"state":"running"|"finished"|"stopped"|"failed","host","pid","process_start","boot","global_step","max_steps",
 * "run_option","world_size","started","updated"}; times are in seconds since 1970; host to boot identify rank 0's
 * process as process.h does. "finished" and "stopped" are written after the last checkpoint; stopped: a signal ended it
 * before max_steps. Optional: "reason", a sentence, if the training ended before max_steps; "signal", "SIGINT" or
 * "SIGTERM", if that ended it; "stepped", when the newest step ended; "steps_per_second" and "images_per_second", the
 * recent rates of all workers together (the latter of samples, whatever they are); and its settings:
 * "model","data","data_dir" (absolute),"data_options" (how the data are read, as words of a command line, quoted for a
 * shell),"optimizer","batch_size" (of a worker),"learning_rate" (at the start). Readers ignore members that they do not
 * know.
 */
#ifndef CHECKPOINT_DIRECTORY_TRAINING_STATE_H
#define CHECKPOINT_DIRECTORY_TRAINING_STATE_H

#include "base/error.h"
#include "base/process.h"

#include <stddef.h>
#include <stdint.h>

/* ---- stop file --------------------------------------------------------------------------------------------------- */

/*
 * CKPT/stop.json: a program that watches a training asks it to end, such as an evaluator whose --patience
 * is used up. Written by rename.
 * {"reason":"...","metric","best_value","best_step","best_checkpoint","step","host","pid", "written"}: only "reason", a
 * sentence, is required; step is the newest evaluated one; written is in seconds since 1970.
 *
 * The trainer checks for the file between steps. If it exists, the trainer ends as it does at max_steps - last
 * checkpoint, training.json "finished" - and gives the reason there. It never deletes the file: as long as it exists, a
 * restarted training ends after its first step. Other trainers may do the same, or only check whether the file exists.
 */

enum { STOP_REASON_MAX = 400, STOP_NAME_MAX = 256 };

struct stop_file {
    char reason[STOP_REASON_MAX]; /* longer ones are cut */
    char metric[STOP_NAME_MAX], best_checkpoint[STOP_NAME_MAX];
    double best_value;
    int64_t best_step, step;
    double written;
};

/* Parses n bytes of the file. ERR_CORRUPT: not a JSON object, or without a reason. Other members of the wrong type
 * count as missing. Pure; path names the file in errors. */
int stop_file_parse(const char *path, const char *text, size_t n, struct stop_file *out, struct error *e);

/* 1: it exists, and *out is filled; if it cannot be parsed, the reason in *out says so: a request to stop is not lost
 * over a comma. 0: it does not exist. < 0: that cannot be determined. */
int stop_file_read(const char *checkpoint_directory, struct stop_file *out, struct error *e);
/* Replaces it; host and pid are those of this process. */
int stop_file_write(const char *checkpoint_directory, const struct stop_file *s, struct error *e);

/* ---- training state ---------------------------------------------------------------------------------------------- */

#define TRAINING_STATE_FILE "training.json"

struct training_state {
    char state[16], run_option[16];
    struct process process;                                           /* of rank 0; pid 0: unknown */
    char reason[400], signal[16], model[64], data[64], optimizer[16]; /* "": unknown */
    char data_dir[1024], data_options[1024];                          /* "": none */
    int64_t batch_size;                                               /* 0: unknown; so is the next */
    double learning_rate;
    int64_t global_step, max_steps, world_size;
    double started, updated;
    double stepped, steps_per_second, images_per_second; /* 0: not known */
};

/* 1: read, 0: the file does not exist, < 0: unreadable or not such a file (a watcher treats that as unknown). */
int training_state_read(const char *checkpoint_directory, struct training_state *out, struct error *e);
int training_state_write(const char *checkpoint_directory, const struct training_state *state, struct error *e);
/* Removes what that process left, if it was killed in training_state_write(). */
void training_state_tidy(const char *checkpoint_directory, const struct process *killed);

#endif
