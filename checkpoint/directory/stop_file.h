/*
 * stop_file.h - CKPT/stop.json: a program that watches a training asks it to end, such as an evaluator whose --patience
 * is used up. Written by rename.
 * {"reason":"...","metric","best_value","best_step","best_checkpoint","step","host","pid", "written"}: only "reason", a
 * sentence, is required; step is the newest evaluated one; written is in seconds since 1970.
 *
 * The trainer checks for the file between steps. If it exists, the trainer ends as it does at max_steps - last
 * checkpoint, training.json "finished" - and gives the reason there. It never deletes the file: as long as it exists, a
 * restarted training ends after its first step. Other trainers may do the same, or only check whether the file exists.
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

/* Parses n bytes of the file. ERR_CORRUPT: not a JSON object, or without a reason. Other members of the wrong type
 * count as missing. Pure; path names the file in errors. */
int stop_file_parse(const char *path, const char *text, size_t n, struct stop_file *out, struct error *e);

/* 1: it exists, and *out is filled; if it cannot be parsed, the reason in *out says so: a request to stop is not lost
 * over a comma. 0: it does not exist. < 0: that cannot be determined. */
int stop_file_read(const char *checkpoint_directory, struct stop_file *out, struct error *e);
/* Replaces it; host and pid are those of this process. */
int stop_file_write(const char *checkpoint_directory, const struct stop_file *s, struct error *e);

#endif
