/*
 * cache_files.h - the directory of saved runs: one file for each large run (run_cache.h), and one for all small runs of
 * a log (cache_pack.h). A file is written under another name and renamed, so that it is whole at any moment, whatever
 * other servers write there. After a failure nothing more is written. Files are trusted only if they are this user's.
 * One thread at a time writes; any number may read meanwhile.
 */
#ifndef EVENTLOG_SERVER_CACHE_FILES_H
#define EVENTLOG_SERVER_CACHE_FILES_H

#include "base/io.h"
#include "eventlog/server/run_cache.h"

#include <limits.h>

#define CACHE_FILES_BYTES ((uint64_t)4 << 30) /* of all saved runs; beyond it those used longest ago are removed */

struct cache_files {
    char *directory;     /* NULL: nothing is saved nor brought back */
    const struct io *io; /* NULL: io_real */
    uint64_t most;       /* bytes; 0: CACHE_FILES_BYTES */
    /* private */
    int full;        /* after a failure */
    uint64_t unseen; /* bytes written since the directory was last looked through; the first time always */
    int seen;
};

/* name: a directory, "off", or NULL: evalboard in $XDG_CACHE_HOME or ~/.cache, or off without both. ERR_NOMEM. */
int cache_files_open(struct cache_files *c, const char *name, struct error *e);
void cache_files_close(struct cache_files *c);

/* Brings a run back. `place`: where it is, and all that its file is named by. Anything but OK: there is none. */
int cache_files_read(const struct cache_files *c, struct run_cache *out, const char *place, const char *name, int merge,
                     struct error *e);
/* The same by run_cache_preview(): only the index of the file is read, and its points when they are asked for. */
int cache_files_preview(const struct cache_files *c, struct run_cache *out, const char *place, const char *name,
                        int merge, struct error *e);
/* ERR_IO, the first time: the directory cannot be written; later calls do nothing. ERR_NOMEM: not saved this time. */
int cache_files_write(struct cache_files *c, const char *place, struct run_data *run, int merge,
                      const struct run_cache_file *files, size_t count, struct error *e);
/* The same for a file of any kind, by its ending: ".run" or ".pack". The descriptor, or -1. */
int cache_file_open(const struct cache_files *c, const char *place, const char *name, int merge, const char *ending,
                    uint64_t *size, struct error *e);
/* Reads so many bytes. 1; 0: there are fewer, or reading fails. */
int cache_file_read(int fd, uint8_t *bytes, size_t size);

struct cache_file {
    struct cache_files *to;
    const struct io *io;
    int fd, system; /* the errno of what failed */
    uint64_t bytes;
    char path[PATH_MAX], temporary[PATH_MAX + 32];
};

/* 1: it is open, and cache_file_end() must follow. 0: nothing is saved. ERR_IO: the directory cannot be written. */
int cache_file_begin(struct cache_file *f, struct cache_files *c, const char *place, const char *name, int merge,
                     const char *ending, struct error *e);
int cache_file_write(void *cache_file, const void *bytes, size_t n); /* a run_cache_write_function */
/* rc: OK, or why the file is given up. Puts it in its place. OK, rc, ERR_IO. */
int cache_file_end(struct cache_file *f, int rc, struct error *e);

/* Removes what is too much, and what killed processes left behind an hour ago or more. */
void cache_files_trim(struct cache_files *c);

#endif
