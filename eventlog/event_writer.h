/*
 * event_writer.h - what the library's own tests need of the writer beyond eventlog.h: system calls that can be made
 * to fail.
 */
#ifndef EVENTLOG_EVENT_WRITER_H
#define EVENTLOG_EVENT_WRITER_H

#include "base/io.h"
#include "eventlog/eventlog.h"

/* eventlog_writer_open() through the calls of io, which outlives the writer; NULL is io_real. */
int event_writer_open_io(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, const struct io *io,
                         struct eventlog_error *error);

/* How often write() was called so far, for benchmarks and tests of batching. */
uint64_t event_writer_writes(const struct eventlog_writer *writer);

#endif
