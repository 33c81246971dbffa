/*
 * stop_file.h - CKPT/stop.json: whoever watches a training asks it to end, here an evaluator whose --patience is over.
 * Put there by rename. {"reason":"...","metric","best_value","best_step","best_checkpoint","step","host","pid",
 * "written"}: only "reason", a sentence, has to be there; step is the newest that was evaluated; written is in seconds
 * since 1970.
 *
 * The trainer looks for the file between steps, ends as it does at max_steps - last checkpoint, training.json
 * "finished" - and gives the reason there. It never deletes the file: as long as it is there, a training that is
 * started again ends after its first step. Other trainers may do the same, or only look whether the file is there.
 */
#ifndef CHECKPOINT_DIRECTORY_STOP_FILE_H
#define CHECKPOINT_DIRECTORY_STOP_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { STOP_REASON_MAX = 400, STOP_NAME_MAX = 256 };

struct stop_file {
    char reason[STOP_REASON_MAX]; /* longer ones are cut */
    char metric[STOP_NAME_MAX], best_checkpoint[STOP_NAME_MAX];
    double best_value;
    int64_t best_step, step;
    double written;
};

/* n bytes of the file. ERR_CORRUPT: no JSON object, or without a reason. Other members of another type count as not
 * there. Pure; path is for the sentence. */
int stop_file_parse(const char *path, const char *text, size_t n, struct stop_file *out, struct error *e);

/* 1: it is there, and *out filled; of one that is there but cannot be understood, *out has a reason that says so: a
 * wish to stop is not lost over a comma. 0: it is not there. < 0: it cannot be looked for. */
int stop_file_read(const char *checkpoint_directory, struct stop_file *out, struct error *e);
/* Replaces it; host and pid are this process's. */
int stop_file_write(const char *checkpoint_directory, const struct stop_file *s, struct error *e);

#endif
