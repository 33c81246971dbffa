/* inspect.h - what the files of `checkpoint inspect` share. */
#ifndef CHECKPOINT_TOOL_INSPECT_H
#define CHECKPOINT_TOOL_INSPECT_H

#include "base/selection.h"
#include "base/table.h"
#include "checkpoint/tool/output.h"

#include <stdint.h>

struct inspect {
    struct output out;
    struct selection tensors;
    int statistics, all;
    int first;           /* of JSON's list */
    int sharded;         /* tensors lie in several shards, or in slices */
    struct table table;
    uint64_t count, elements, bytes, nan, inf;
    int damaged;
};

/* Lists the checkpoints of a directory. */
int inspect_directory(struct inspect *x, const char *directory, struct error *e);

#endif
