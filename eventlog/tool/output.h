/*
 * output.h - where a command's data goes: standard output, or a file that appears whole by rename, gzipped if its name
 * ends in .gz (or .GZ). The first error is kept; ask for it at the end.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_H
#define EVENTLOG_TOOL_OUTPUT_H

#include "base/error.h"

#include <stddef.h>

struct output;

/* path NULL or "-": standard output. An existing regular file is refused unless force. *out is yours. */
int output_open(struct output **out, const char *path, int force, struct error *e);

void output_bytes(struct output *o, const void *bytes, size_t n);
void output_text(struct output *o, const char *text);

/* Escape sequences in what follows are ours, and names in it are safe: they reach a terminal as they are. Without it
 * control characters are shown as \xHH there. */
void output_colours(struct output *o);

/* Room for n bytes (at most 4096), to be followed by output_filled() with how many were used. */
char *output_room(struct output *o, size_t n);
void output_filled(struct output *o, size_t n);

/* 1 if anything has that name, a dangling link too. */
int output_exists(const char *path);

/* The path of the file that is renamed in the end, for what writes to it by itself; NULL where there is none. A file
 * that nobody asks this of has no name until the end, where the file system can make one. */
const char *output_temporary(struct output *o);

/* 1 for a file, 0 for standard output. */
int output_is_file(const struct output *o);

/* How many columns a line of text may take: those of the terminal that o is, 0 (no limit) where it is none. */
int output_columns(const struct output *o);

/* Frees o. commit: the file takes its place, and any error since open is returned; otherwise it is removed. */
int output_close(struct output *o, int commit, struct error *e);

#endif
