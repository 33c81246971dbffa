/*
 * command.h - the subcommands of `checkpoint`, and what they share: exit statuses, talk, names as text, columns.
 * Each command gets the arguments from its own name on and returns the status.
 */
#ifndef CHECKPOINT_TOOL_COMMAND_H
#define CHECKPOINT_TOOL_COMMAND_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/options.h"

#include <stddef.h>
#include <stdint.h>

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2 }; /* 1: they differ, or there is damage; 2: usage, or input */

int command_inspect(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_convert(int argc, char **argv);

/* Prints "program: sentence" on standard error, control characters as \xHH; EXIT_USAGE. */
int command_fail(const char *program, const struct error *e);

/* Writes the buffer to standard output and empties it. */
void command_put(struct buffer *b);

/* The status in the end: `status`, or EXIT_USAGE where standard output could not be written. */
int command_finish(const char *program, int status);

/* 1 if there are no globs, or the name matches one ('*' matches '/' too). */
int command_wanted(const struct option_list *globs, const char *name);

/* Appends a name for people: control characters and bytes that are not UTF-8 as \xHH. */
void command_name(struct buffer *out, const char *name, size_t length);

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
