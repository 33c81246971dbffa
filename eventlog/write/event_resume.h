/*
 * event_resume.h - going on in a run that an earlier process wrote: which file, whether it is free, where it ends.
 */
#ifndef EVENTLOG_WRITE_EVENT_RESUME_H
#define EVENTLOG_WRITE_EVENT_RESUME_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

/* The event file of the directory whose name is the last in byte order, compressed ones aside: 1 and its path, 0: there
 * is none. */
int event_resume_newest(const char *directory, char *path, size_t size, struct error *e);

/*
 * Opens the file for appending, cut back to its last whole record if its tail is torn (half a record, or zeros that a
 * crash left); *size: its length then, *cut: bytes that were cut off. *fd is the caller's, opened with O_APPEND, and
 * holds a flock().
 * ERR_CORRUPT: damage that whole records follow, for a repair. ERR_IO with EBUSY: a writer has it: one of this library
 * holds its lock, or the kernel knows of a descriptor open for writing (this machine's only, and not on NFS or SMB).
 */
int event_resume_open(const struct io *io, const char *path, int *fd, uint64_t *size, uint64_t *cut, struct error *e);

/*
 * Appends the records that stand behind the first one of a file with which all points of steps >= step are to go:
 * two session starts. TensorBoard's Python loader passes the first one of a run over and purges at every later one, so
 * with two it purges whether earlier files have one or not.
 */
int event_resume_purge(struct buffer *out, int64_t step, double wall_time, struct error *e);

#endif
