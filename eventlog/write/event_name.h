/*
 * event_name.h - names of event files, events.out.tfevents.<seconds>.<host>.<pid>.<n><suffix>, that sort behind those
 * that are there. TensorBoard reads files in byte order of their names, and its Python loader never goes back to a
 * lower one. So the seconds are those of now; the process's own files of one second differ by the counter; and where
 * that does not sort behind the greatest name there (a clock set back, another process in this second), the seconds are
 * one more than its.
 */
#ifndef EVENTLOG_WRITE_EVENT_NAME_H
#define EVENTLOG_WRITE_EVENT_NAME_H

#include "base/error.h"

#include <limits.h>
#include <stddef.h>

struct event_name {
    char host[HOST_NAME_MAX + 1];
    long long seconds;
    long pid, counter;
};

/* A name behind `current`, that of the file at hand, or with NULL behind all others of the directory: listing one takes
 * time in proportion to its files, so that is done once a writer. ERR_ARG: too long with the suffix. */
int event_name_first(struct event_name *p, const char *directory, const char *suffix, const char *current, char *out,
                     size_t size, struct error *e);
/* The one after it, where that is taken. ERR_IO: there are no more. */
int event_name_next(struct event_name *p, const char *directory, const char *suffix, char *out, size_t size,
                    struct error *e);

#endif
