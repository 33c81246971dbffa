/*
 * directory_below.h - files below a directory, which appear whole by rename. Their directories are made where they are
 * missing and entered part by part, never through a link: nothing lands outside.
 */
#ifndef EVENTLOG_TOOL_DIRECTORY_BELOW_H
#define EVENTLOG_TOOL_DIRECTORY_BELOW_H

#include "base/error.h"

#include <sys/types.h>

/* a file that is being written */
struct directory_below {
    const char *root_path, *path, *base; /* base: its name in the directory `at` */
    int at, fd;
    char temporary[64];
    struct unfinished *unfinished;
};

/* root: a descriptor; root_path: for sentences. path: of a file below it, no part of it ".." or empty; borrowed until
 * the close. ERR_ARG where it exists and force is 0. After an error there is nothing to close. */
int directory_below_open(struct directory_below *f, int root, const char *root_path, const char *path, int force,
                         mode_t mode, struct error *e);
/* rc: what the writing came to. If it is OK, the file takes its place, else it is removed. */
int directory_below_close(struct directory_below *f, int rc, struct error *e);

#endif
