/*
 * eventlog.h - the public interface of libeventlog: write event files that an unmodified TensorBoard shows.
 *
 * The only header a user needs; usable from C11 and C++. Functions return EVENTLOG_OK (0) or a negative
 * EVENTLOG_ERROR_*, with a sentence in *error (which may be NULL). Nothing here prints, exits or installs handlers.
 */
#ifndef EVENTLOG_EVENTLOG_H
#define EVENTLOG_EVENTLOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    EVENTLOG_OK = 0,
    EVENTLOG_ERROR_IO = -1,      /* the operating system said no; eventlog_error.system is errno */
    EVENTLOG_ERROR_CORRUPT = -2, /* a file breaks its format */
    EVENTLOG_ERROR_MEMORY = -3,
    EVENTLOG_ERROR_ARGUMENT = -4, /* a tag that is not UTF-8, a wall time that is NaN, ... */
};

struct eventlog_error {
    int code;
    int system;        /* errno, or 0 */
    char message[480]; /* one line, no newline */
};

/*
 * A writer appends to one event file of its own. The first record (brain.Event:2) is in the file when open returns.
 * Only whole records are written; an append that fails is cut back to the last whole record, and the writer can be
 * used again once there is room. One writer is for one thread at a time, and for the process that opened it: in a
 * forked child its functions fail with EVENTLOG_ERROR_ARGUMENT and write nothing; the child opens a writer of its own.
 */
struct eventlog_writer;

struct eventlog_writer_options { /* all zero, or NULL: the defaults */
    size_t buffer_bytes;   /* events are kept up to this many bytes before a write; default 65536 */
    double flush_seconds;  /* ... and no longer than this since the last write, checked at each call; default 2 */
    const char *suffix;    /* added to the file's name, for example ".train"; default none */
    const char *source;    /* source_metadata.writer; default "evalboard" */
};

/* Makes directory (with its parents) and a new file events.out.tfevents.<seconds>.<host>.<pid>.<n><suffix> in it.
 * On OK *out is yours until eventlog_writer_close(). options is copied. */
int eventlog_writer_open(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, struct eventlog_error *error);

/* One point of a scalar series. tag: UTF-8, copied; wall_time: seconds since 1970, finite, or 0 for now; step: the
 * global step. NaN and infinite values are legal. EVENTLOG_ERROR_IO: a write failed; events not yet in the file stay
 * buffered and are tried again by the next call, up to a limit of 16 buffers, beyond which the event is refused. */
int eventlog_writer_scalar(struct eventlog_writer *writer, const char *tag, int64_t step, double wall_time, float value,
                           struct eventlog_error *error);

/* Hands all buffered events to the operating system: readers see them. */
int eventlog_writer_flush(struct eventlog_writer *writer, struct eventlog_error *error);
/* The same and fsync: they survive a power cut. */
int eventlog_writer_sync(struct eventlog_writer *writer, struct eventlog_error *error);

/* Path of the file. Borrowed until close. */
const char *eventlog_writer_path(const struct eventlog_writer *writer);

/* Flushes and frees, also when it fails. NULL is fine. */
int eventlog_writer_close(struct eventlog_writer *writer, struct eventlog_error *error);

#ifdef __cplusplus
}
#endif

#endif
