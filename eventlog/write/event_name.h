/*
 * event_name.h - makes names of event files, events.out.tfevents.<seconds>.<host>.<pid>.<n><suffix>, that sort after
 * those already there: TensorBoard reads files in byte order of their names, and its Python loader never goes back to a
 * lower one. The seconds are the current time; files that a process makes in the same second differ by the counter. If
 * such a name does not sort after the greatest one in the directory (a clock set back, another process in the same
 * second), its seconds are one more than those of that name.
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

/* Makes a name after `current`, the name of the current file, or with NULL after all others in the directory. Listing a
 * directory takes time in proportion to its files, so a writer does it once. ERR_ARG: too long with the suffix. */
int event_name_first(struct event_name *p, const char *directory, const char *suffix, const char *current, char *out,
                     size_t size, struct error *e);
/* The next name, if that one is taken. ERR_IO: there are no more. */
int event_name_next(struct event_name *p, const char *directory, const char *suffix, char *out, size_t size,
                    struct error *e);

#endif
