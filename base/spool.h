/*
 * spool.h - stores bytes that are needed more than once but can be read only once, in an unnamed file in the directory
 * TMPDIR, or /tmp: gone when it is closed, however the process ends. One thread at a time.
 */
#ifndef BASE_SPOOL_H
#define BASE_SPOOL_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct spool {
    int fd;              /* for reading with pread(); -1: not open */
    uint64_t size, most; /* bytes so far; its maximum: half of the space free at the start */
};
#define SPOOL_CLOSED \
    { \
        -1, 0, 0 \
    }

int spool_open(struct spool *s, struct error *e);
void spool_close(struct spool *s); /* may be closed already */

/* Appends. ERR_IO: no room, or more than `most`. */
int spool_append(struct spool *s, const void *bytes, size_t n, struct error *e);

/* Appends n zeros, without writing them. */
int spool_append_hole(struct spool *s, uint64_t n, struct error *e);

/* Appends everything from fd's position to its end; from_path names it in errors. */
int spool_append_from(struct spool *s, int fd, const char *from_path, struct error *e);

#endif
