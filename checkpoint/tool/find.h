/*
 * find.h - which checkpoint a path on the command line means: a prefix or one of its files, a safetensors file, or a
 * directory, of which the newest whole checkpoint is taken as the evaluator would.
 */
#ifndef CHECKPOINT_TOOL_FIND_H
#define CHECKPOINT_TOOL_FIND_H

#include "base/error.h"

#include <limits.h>

struct found {
    char path[PATH_MAX];
    int is_file;       /* 1: a safetensors file; 0: the prefix of a TensorFlow checkpoint */
    struct error note; /* a sentence that people should read, or none: the state file says something else */
};

/* Says what a path that means no checkpoint is instead, and what to do with it: ERR_ARG. A file that could be a
 * safetensors file is not opened here. index_only: of a directory without a whole checkpoint, the newest of which there
 * is the index. */
int find_checkpoint(const char *path, int index_only, struct found *out, struct error *e);

#endif
