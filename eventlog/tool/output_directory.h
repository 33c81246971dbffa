/*
 * output_directory.h - a directory of files whose names are made from runs and tags: every byte outside A-Z a-z 0-9 . _
 * + @ = - becomes '_'; names that become equal get -2, -3, ... in the order they are asked for. Files appear by rename
 * once complete; none is ever made outside the directory.
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

/* 1 if path ends in '/' or is a directory. */
int output_directory_is(const char *path);

/* Makes the directory if it is missing. force: files in it may be overwritten. Release d also after an error. */
int output_directory_open(struct output_directory *d, const char *path, int force, struct error *e);
void output_directory_release(struct output_directory *d);

/* Appends text as part of a name, with unsafe bytes replaced. */
void output_directory_safe(struct buffer *name, const char *text, size_t n);

/* Opens the file `stem` + extension, or the next name that this command has not used: *out is yours, output_close() it.
 * ERR_ARG: it exists and force is 0. */
int output_directory_next(struct output_directory *d, const char *stem, const char *extension, struct output **out,
                          struct error *e);

#endif
