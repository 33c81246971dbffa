/*
 * event_output.h - where the bytes of a writer without a directory go: to functions of the caller (eventlog_output) or
 * to memory. Both look to event_file like system calls, with an object in the place of each file; an object takes all
 * bytes of a write or none, so nothing is ever cut back.
 */
#ifndef EVENTLOG_WRITE_EVENT_OUTPUT_H
#define EVENTLOG_WRITE_EVENT_OUTPUT_H

#include "base/error.h"
#include "base/io.h"
#include "eventlog/eventlog.h"

#include <stddef.h>

struct event_output;

/* to: copied; NULL: memory. ERR_ARG: a function is missing, or an option makes no sense without a directory. On OK *out
 * is the caller's until event_output_free(). */
int event_output_new(struct event_output **out, const struct eventlog_output *to,
                     const struct eventlog_writer_options *options, struct error *e);
void event_output_free(struct event_output *o); /* NULL is fine */

/* Outlives every file written with it; for one thread at a time. */
const struct io *event_output_io(const struct event_output *o);

/* Hands over what was written to memory since the last call, for free(): NULL and 0 if that is nothing. For any thread,
 * at any time. ERR_ARG: it does not go to memory. */
int event_output_take(struct event_output *o, void **bytes, size_t *n, struct error *e);

#endif
