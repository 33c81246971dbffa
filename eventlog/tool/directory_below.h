/*
 * directory_below.h - a directory below another, made where it is missing and entered part by part, never through a
 * link: nothing lands outside.
 */
#ifndef EVENTLOG_TOOL_DIRECTORY_BELOW_H
#define EVENTLOG_TOOL_DIRECTORY_BELOW_H

#include "base/error.h"

/* root: a descriptor; root_path: for sentences. path: of a file below it, no part of it ".." or empty. Returns a
 * descriptor of the directory that the file lies in, yours, with its name there in *base; or a negative code. */
int directory_below_open(int root, const char *root_path, const char *path, const char **base, struct error *e);

#endif
