/*
 * removable.h - lists the runs below a directory with their event files, and deletes a run. Symbolic links are not
 * followed, not even those that appear meanwhile. It deletes only event files, by name and by contents, that are
 * unchanged since they were listed, and directories left empty.
 */
#ifndef EVENTLOG_TOOL_REWRITE_REMOVABLE_H
#define EVENTLOG_TOOL_REWRITE_REMOVABLE_H

#include "base/error.h"
#include "base/program/log.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct removable_file {
    char *name; /* without its directory */
    struct stat before;
};

struct removable_run {
    char *name;                   /* relative to the directory that was listed; "." for that itself */
    char *directory;              /* its path */
    size_t root;                  /* how many bytes of that are the listed directory, which stays */
    struct stat before;           /* of the directory */
    struct removable_file *files; /* count of them, ascending by name */
    size_t count;
    uint64_t bytes;
    double changed; /* the newest time of change of its files, seconds since 1970 */
};

struct removable {
    struct removable_run *runs; /* in no order */
    size_t count, capacity;
    size_t links;  /* symbolic links that might have led to event files */
    size_t others; /* files that are named like event files but are not */
    int failed;    /* a directory could not be read, which was reported */
};

/* Adds the runs of a directory; several: with its path in their names. ERR_ARG: it is not a directory. */
int removable_list(struct removable *r, char *path, int several, struct log *log, struct error *e);
void removable_release(struct removable *r);

/* OK: no writer of the run is known, and it is unchanged. Sets *unknown to 1 if the kernel does not tell. ERR_ARG: e
 * says why the run must stay. */
int removable_check(const struct removable_run *run, int *unknown, struct error *e);

/* The same, then deletes the run, its last file first, so that the beginning of the run is left if this is interrupted.
 * Each file is renamed to NAME.prune, checked again under that name, by which nobody else opens or replaces it, and
 * then deleted, or given its name back. ERR_ARG: as above, and the run is unchanged; ERR_IO: not all of it could be
 * deleted. */
int removable_delete(const struct removable_run *run, struct error *e);

#endif
