/*
 * event_resume.h - continues a run that an earlier process wrote: which file, whether it is free, where it ends.
 */
#ifndef EVENTLOG_WRITE_EVENT_RESUME_H
#define EVENTLOG_WRITE_EVENT_RESUME_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

/* Finds the event file of the directory whose name is last in byte order, ignoring compressed ones: 1 and its path; 0:
 * there is none. */
int event_resume_newest(const char *directory, char *path, size_t size, struct error *e);

/*
 * Opens the file for appending, and truncates it to its last whole record if its tail is torn (half a record, or zeros
 * that a crash left); *size: its length afterwards, *cut: bytes that were cut off. *fd is the caller's, opened with
 * O_APPEND, and holds a flock(). ERR_CORRUPT: damage followed by whole records, which needs a repair. ERR_IO with
 * EBUSY: another writer has it open: one of this library holds the lock, or the kernel knows of a descriptor open for
 * writing (on this machine only, and not on NFS or SMB).
 */
int event_resume_open(const struct io *io, const char *path, int *fd, uint64_t *size, uint64_t *cut, struct error *e);

/*
 * Appends the records that follow the first one of a file whose start is to remove all points at steps >= step: two
 * session starts. TensorBoard's Python loader ignores the first one of a run and purges at every later one, so with two
 * it purges whether earlier files have one or not.
 */
int event_resume_purge(struct buffer *out, int64_t step, double wall_time, struct error *e);

#endif
