/*
 * command.h - the subcommands of `checkpoint`, and what they share: names as text, columns.
 * Each command gets the arguments from its own name on and returns the status.
 */
#ifndef CHECKPOINT_TOOL_COMMAND_H
#define CHECKPOINT_TOOL_COMMAND_H

#include "base/buffer.h"
#include "base/options.h"
#include "base/subcommand.h"
#include "checkpoint/tool/output.h"

#include <stddef.h>
#include <stdint.h>

/* All commands: ROW(the end of command_NAME(), name, what --help says of it). A new command is one row here. */
#define CHECKPOINT_COMMANDS(ROW) \
    ROW(inspect, "inspect", "tensors with type, shape, place and statistics; or the checkpoints of a directory") \
    ROW(verify, "verify", "every CRC, length and place; exit 1 with findings") \
    ROW(compare, "compare", "two checkpoints tensor by tensor; exit 1 when they differ") \
    ROW(convert, "convert", "the same tensors as bundle, safetensors file or .npy files")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
CHECKPOINT_COMMANDS(DECLARE)
#undef DECLARE

/* 1 if there are no globs, or the name matches one ('*' matches '/' too). */
int command_wanted(const struct option_list *globs, const char *name);

/* Appends a shape: "[2, 3]". */
void command_shape(struct buffer *out, int rank, const int64_t *shape);

/* A table for people; its cells are kept until it is printed. All zero to begin with, but for count. */
struct columns {
    size_t count;         /* columns, at most 16 */
    unsigned right;       /* bit i: column i is aligned to the right */
    struct buffer cells;  /* each ends in a NUL */
    size_t filled, width[16];
};

void columns_cell(struct columns *c, const char *text);
void columns_print(struct columns *c, struct output *o); /* releases the cells */

#endif
