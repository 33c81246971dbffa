/*
 * output_directory.h - a directory of files with names made from runs and tags: every byte outside A-Z a-z 0-9 . _
 * + @ = - becomes '_', names that fall together get -2, -3, ... in the order they are asked for. Files appear
 * whole, by rename; none is ever made outside the directory.
 */
#ifndef EVENTLOG_TOOL_OUTPUT_DIRECTORY_H
#define EVENTLOG_TOOL_OUTPUT_DIRECTORY_H

#include "base/buffer.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/output.h"

struct output_directory {
    char *path;
    int force;
    struct tag_index used; /* names */
};

/* 1 if path means a directory: it ends in '/', or is one. */
int output_directory_is(const char *path);

/* Makes the directory where it is missing. force: files in it may be written over. Release d also after an error. */
int output_directory_open(struct output_directory *d, const char *path, int force, struct error *e);
void output_directory_release(struct output_directory *d);

/* Appends text as a part of a name. */
void output_directory_safe(struct buffer *name, const char *text, size_t n);

/* The file `stem` + extension, or the next that is free, opened: *out is yours, output_close() it. ERR_ARG where it
 * exists and force is 0. */
int output_directory_next(struct output_directory *d, const char *stem, const char *extension, struct output **out,
                          struct error *e);

#endif
