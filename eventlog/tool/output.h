/*
 * output.h - a command's output: standard output, or a file that appears by rename once complete, gzipped if its name
 * ends in .gz (or .GZ). The first error is kept; output_close() returns it.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_H
#define EVENTLOG_TOOL_OUTPUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct output;

/* Of .gz unless asked otherwise: points as CSV are packed in a third of the time of level 6, and take 16 % more. */
enum { OUTPUT_GZIP_LEVEL = 1, OUTPUT_GZIP_LEVEL_MAX = 9 };

/* path NULL or "-": standard output. An existing regular file is refused unless force is set. *out is yours:
 * output_close() it. */
int output_open(struct output **out, const char *path, int force, struct error *e);

/* For FILE.gz: from 1, quick, to 9, small; 0: the usual one. Before anything is written. */
void output_gzip_level(struct output *o, int64_t level);

/* 1 if a file of this name, which may be NULL, is gzipped. */
int output_path_is_packed(const char *path);

/* One that keeps what is written to it, for output_move(). Close it without commit. */
int output_open_memory(struct output **out, struct error *e);
/* Writes to `to` what has been written to `from`, which is empty again. */
void output_move(struct output *to, struct output *from);

void output_bytes(struct output *o, const void *bytes, size_t n);
void output_text(struct output *o, const char *text);

/* What follows has our own escape sequences and only safe names, so it is sent to a terminal unchanged. Without this
 * call, control characters are shown there as \xHH. */
void output_colours(struct output *o);

/* Room for n bytes (at most 4096); call output_filled() next with the number used. */
char *output_room(struct output *o, size_t n);
void output_filled(struct output *o, size_t n);

/* 1 if anything has that name, even a dangling link. */
int output_exists(const char *path);

/* The path of the temporary file that is renamed at the end, for libraries that write to a path; NULL if there is none.
 * Unless this is called, the file has no name until the end, if the file system allows that. */
const char *output_temporary(struct output *o);

/* 1 for a file, 0 for standard output. */
int output_is_file(const struct output *o);

/* How many columns a line of text may take: the width of the terminal, or 0 (no limit) if o is not one. */
int output_columns(const struct output *o);

/* Frees o. commit: the file is renamed into place, and any error since output_open() is returned; otherwise it is
 * removed. */
int output_close(struct output *o, int commit, struct error *e);

#endif
