/*
 * command.h - the subcommands of `checkpoint`, and what they share: names as text, tables. Each command gets the
 * arguments from its own name on and returns the exit status.
 */
#ifndef CHECKPOINT_TOOL_COMMAND_H
#define CHECKPOINT_TOOL_COMMAND_H

#include "base/buffer.h"
#include "base/program/options.h"
#include "base/program/selection.h"
#include "base/program/subcommand.h"
#include "base/program/table.h"
#include "checkpoint/tool/output.h"
#include "checkpoint/tool/source.h"

#include <stdint.h>

/* All commands: ROW(the end of command_NAME(), name, its line in --help). A new command is one row here. */
#define CHECKPOINT_COMMANDS(ROW) \
    ROW(inspect, "inspect", "Show the tensors of a checkpoint, or list the checkpoints of a directory") \
    ROW(verify, "verify", "Check every CRC, length and offset; exit 1 if something is wrong") \
    ROW(compare, "compare", "Compare two checkpoints tensor by tensor; exit 1 if they differ") \
    ROW(convert, "convert", "Convert to a TensorFlow checkpoint, a safetensors file or .npy files")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
CHECKPOINT_COMMANDS(DECLARE)
#undef DECLARE

#define COMMAND_TENSOR_OPTION(selection) \
    { \
        OPTION_LIST, 0, "tensor", &(selection).patterns, "GLOB", \
            .help = "Select the tensors whose names match GLOB ('*' also matches '/'); may be repeated" \
    }

/* Opens a checkpoint as source_open() does, and prints its notes on standard error. */
int command_open(struct source *s, const char *path, int index_only, struct output *o, struct error *e);

/* Call it when the command is done: reports each pattern that matched no tensor, and frees the selection. EXIT_NO if
 * there was one, else the status. */
int command_selected(struct selection *s, const struct output *o, int status);

/* Appends a shape: "[2, 3]". */
void command_shape(struct buffer *out, int rank, const int64_t *shape);

/* Prints a table, fitted to the terminal if the output is one, and empties it. */
void command_table(struct table *t, struct output *o);

#endif
