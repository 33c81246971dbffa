/*
 * archiving.h - packs files into an archive (log_archive.h), which appears by rename once complete, and checks that it
 * holds them, so that they can be deleted. Files that are being written or change meanwhile are refused.
 */
#ifndef EVENTLOG_TOOL_REWRITE_ARCHIVING_H
#define EVENTLOG_TOOL_REWRITE_ARCHIVING_H

#include "base/error.h"
#include "base/program/log.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct archiving_file {
    char *name, *path; /* in the archive, and where it is */
    struct stat before;
};

/* all zero at first, but: */
struct archiving {
    struct log *log;              /* gets the progress */
    const char *output;           /* the archive's path, or "-" */
    int level;                    /* 1 fast to 9 small */
    int force;                    /* overwrite it; take files that are being written as they are now */
    struct archiving_file *files; /* count of them, in order of names once it is written */
    size_t count;
    uint64_t bytes, packed; /* of the files; of the archive */
    /* private */
    size_t capacity;
    uint64_t done; /* packed, then checked */
    double began;  /* to read, monotonic */
};

/* Where names in the archive begin in the path of a directory: at its last part; at its end for "." and the like. */
size_t archiving_name_start(const char *path);

/* Adds a file, which must still be as st says when it is packed. ERR_ARG: an archive cannot hold this name. */
int archiving_add(struct archiving *a, const char *name, const char *path, const struct stat *st, struct error *e);

/* Writes the archive and renames it into place. ERR_ARG: it already exists, two files have the same name, or one is
 * being written. */
int archiving_write(struct archiving *a, struct error *e);

/* Reads each member back from the disk and compares it with its file. ERR_CORRUPT: they differ. */
int archiving_check(struct archiving *a, struct error *e);

void archiving_release(struct archiving *a);

#endif
