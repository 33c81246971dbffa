/*
 * shared_bytes.h - bytes that several hold, in large pages where there are many: of a saved run, which is read into
 * them once, and in which its points stay. They are memory and no mapped file: what was verified stays what it was, and
 * a file that is cut, or a disk that fails later, cannot end the process.
 *
 * Kept and dropped from any thread.
 */
#ifndef EVENTLOG_SERVER_STORE_SHARED_BYTES_H
#define EVENTLOG_SERVER_STORE_SHARED_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct shared_bytes {
    uint8_t *bytes;
    size_t size;
    /* private */
    unsigned references;
};

/* size > 0. NULL: no memory. shared_bytes_drop() it. */
struct shared_bytes *shared_bytes_new(size_t size);
struct shared_bytes *shared_bytes_keep(struct shared_bytes *s); /* returns s */
void shared_bytes_drop(struct shared_bytes *s);                 /* NULL is fine */

#endif
