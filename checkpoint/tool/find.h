/*
 * find.h - finds the checkpoint that a path on the command line means: a prefix or one of its files, a safetensors
 * file, the index of one in parts, or a directory, whose newest whole checkpoint is used, as in the evaluator.
 */
#ifndef CHECKPOINT_TOOL_FIND_H
#define CHECKPOINT_TOOL_FIND_H

#include "base/error.h"

#include <limits.h>

struct found {
    char path[PATH_MAX];
    int is_file;       /* 1: a safetensors file or its index; 0: the prefix of a TensorFlow checkpoint */
    struct error note; /* a message for people, or none: the state file disagrees */
};

/* ERR_ARG: the path is not a checkpoint; e says what it is instead and what to do. A file that could be a safetensors
 * file is not opened here. index_only: in a directory without a whole checkpoint, takes the newest one that has an
 * index. */
int find_checkpoint(const char *path, int index_only, struct found *out, struct error *e);

#endif
