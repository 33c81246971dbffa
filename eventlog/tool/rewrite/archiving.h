/*
 * archiving.h - files into an archive (log_archive.h) that appears whole by rename, and a check that it holds them,
 * after which they can be deleted. Files that somebody writes, or that change meanwhile, are refused.
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

struct archiving { /* all zero at first, but: */
    struct log *log;     /* gets the progress */
    const char *output;  /* the archive's path, or "-" */
    int level;           /* 1 fast to 9 small */
    int force;           /* write over it; take files that somebody writes as they are now */
    struct archiving_file *files; /* count of them, in order of names once it is written */
    size_t count;
    uint64_t bytes, packed;       /* of the files; of the archive */
    /* private */
    size_t capacity;
    uint64_t done; /* packed, then checked */
    double began;  /* to read, monotonic */
};

/* Where in the path of a directory names in an archive begin: with its last part; at its end for "." and the like. */
size_t archiving_name_start(const char *path);

/* One more file, as it is known: it has to be so still when it is packed. ERR_ARG: no name for an archive. */
int archiving_add(struct archiving *a, const char *name, const char *path, const struct stat *st, struct error *e);

/* The archive, into its place. ERR_ARG: it is there already, two files have one name, or one of them is written. */
int archiving_write(struct archiving *a, struct error *e);

/* Reads each member back from the disk and compares it with its file. ERR_CORRUPT where they differ. */
int archiving_check(struct archiving *a, struct error *e);

void archiving_release(struct archiving *a);

#endif
