/*
 * command.h - the subcommands of `checkpoint`, and what they share: talk, names as text, columns.
 * Each command gets the arguments from its own name on and returns the status.
 */
#ifndef CHECKPOINT_TOOL_COMMAND_H
#define CHECKPOINT_TOOL_COMMAND_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/options.h"
#include "base/subcommand.h"

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

/* Prints "program: sentence" on standard error; EXIT_USAGE. */
int command_fail(const char *program, const struct error *e);

/* Writes the buffer to standard output and empties it. */
void command_put(struct buffer *b);

/* The status in the end: `status`, or EXIT_USAGE where standard output could not be written. */
int command_finish(const char *program, int status);

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
void columns_print(struct columns *c); /* to standard output; releases the cells */

#endif
