/*
 * event_writer.h - what the library's own files need of the writer beyond eventlog.h: system calls that tests can make
 * fail, and the way in which all values but scalars get into the file. kinds/event_writer_<family>.c encodes its values
 * with wire.h, without I/O, and passes the bytes to event_writer_finish().
 */
#ifndef EVENTLOG_WRITE_EVENT_WRITER_H
#define EVENTLOG_WRITE_EVENT_WRITER_H

#include "base/io.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/wire.h"
#include "eventlog/write/event_writer_value.h"

/* eventlog_writer_open() with the system calls of io, which outlives the writer; NULL: io_real. */
int event_writer_open_io(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, const struct io *io,
                         struct eventlog_error *error);

/* ERR_ARG if an option makes no sense. */
int event_writer_check_options(const struct eventlog_writer_options *o, struct error *e);

/* The last step of every function of a family. rc: the result of encoding, with its error in e; on OK, member (the
 * fields of Summary.Value besides tag and metadata) becomes an event with metadata: complete if the tag is new to the
 * file, later without name and description. Releases member, copies e to error. */
int event_writer_finish(struct eventlog_writer *w, int rc, const struct event_writer_value *value, struct wire *member,
                        struct error *e, struct eventlog_error *error);

/* The same for an event that is not a summary: body has its fields besides wall time and step. */
int event_writer_finish_event(struct eventlog_writer *w, int rc, int64_t step, double wall_time, struct wire *body,
                              struct error *e, struct eventlog_error *error);

/* The wall time that a call means: its own, or now for 0. */
double event_writer_time(double wall_time);

/* From now on a wall time of 0 means 1970: for callers that copy points unchanged. */
void event_writer_exact_times(struct eventlog_writer *w);

/* For writing files other than event files. OK, or ERR_ARG in a forked child, or without a directory. */
int event_writer_check_directory(const struct eventlog_writer *w, struct error *e);
const char *event_writer_directory(const struct eventlog_writer *w);
const struct io *event_writer_io(const struct eventlog_writer *w);

#endif
