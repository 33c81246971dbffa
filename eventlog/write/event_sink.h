/*
 * event_sink.h - takes a writer's records and puts them into its event_file. There are two sinks: event_direct.c writes
 * in the thread of the call that fills a batch or comes late enough, event_queue.c in a thread of its own.
 *
 *     rc = s->operations->begin(s, need, e);     room for need bytes; the caller is inside now
 *     n = encode(event_sink_place(s));           a whole record
 *     rc = s->operations->put(s, n, e);          it is the sink's; the caller is outside again
 *
 * One caller at a time is inside. The queue takes calls from many threads, so shared state is read and changed only
 * inside; the direct sink takes calls from one thread at a time, and being inside costs nothing there.
 */
#ifndef EVENTLOG_WRITE_EVENT_SINK_H
#define EVENTLOG_WRITE_EVENT_SINK_H

#include "base/error.h"
#include "eventlog/write/event_file.h"

#include <stddef.h>
#include <stdint.h>

/* ---- event batch ------------------------------------------------------------------------------------------------- */

/*
 * Whole records waiting in memory, end to end. One thread at a time.
 */

struct event_batch {
    uint8_t *bytes; /* capacity of them, used by records */
    size_t used, capacity;
    uint64_t events; /* how many of the records are events from calls */
};

#define EVENT_BATCH_EMPTY \
    { \
        NULL, 0, 0, 0 \
    }

void event_batch_release(struct event_batch *b);
/* Makes room for n more bytes: 0, or -1 if memory runs out; then the batch is unchanged. Grows by doubling up to
 * `limit`, and beyond that only as needed. */
int event_batch_reserve(struct event_batch *b, size_t n, size_t limit);
/* Frees memory beyond `keep` bytes if the batch is empty. */
void event_batch_shrink(struct event_batch *b, size_t keep);

/* ---- event sink -------------------------------------------------------------------------------------------------- */

struct event_sink_options {
    size_t bytes;         /* that may wait; a longer event waits alone */
    size_t batch;         /* bytes that are worth a write */
    double flush_seconds; /* no event waits longer; in the direct sink, until the first call after that */
    int drop;             /* when the queue is full: drop instead of waiting */
};

struct event_sink_state {
    uint64_t queued;        /* events put that are not in the file yet */
    struct event_file file; /* its counters and last error only */
    const char *path;       /* borrowed until the event_file is closed */
};

enum { EVENT_SINK_DROPPED = 1 };
enum {
    EVENT_SINK_SYNC = 1,
    EVENT_SINK_MAKE_AGAIN = 2
}; /* sync too; make a lost file again, as event_file_make_again()
                                                          * does */

struct event_sink;

/* In the order in which they are used. Only abandon() may be called in a forked child, where the sink's lock may be
 * held forever. e is not NULL. */
struct event_sink_operations {
    void (*enter)(struct event_sink *s);
    void (*leave)(struct event_sink *s);
    /* Enters, whatever it returns. OK: there is room for n bytes; EVENT_SINK_DROPPED: the queue is full and the event
     * must be dropped; ERR_IO: the sink is full because writing fails; ERR_NOMEM. While the queue is full only because
     * the disk is slow, the call waits, and others may enter. */
    int (*begin)(struct event_sink *s, size_t n, struct error *e);
    /* Between begin() and put(): what follows goes to a new file. On an error no file could be made, and it goes to the
     * old one. The queue, which finds out later, returns OK and sets rotation_failed. */
    int (*rotate)(struct event_sink *s, struct error *e);
    /* Takes the n bytes at event_sink_place() as one record, and leaves. If all goes well, returns the error that e
     * already holds, if any. Any other error is one of writing; the record has been taken. */
    int (*put)(struct event_sink *s, size_t n, struct error *e);
    /* Inside. */
    void (*state)(struct event_sink *s, struct event_sink_state *state);
    /* Outside: writes all that was put before; an error says that this failed. how: 0, or EVENT_SINK_SYNC,
     * EVENT_SINK_MAKE_AGAIN. */
    int (*flush)(struct event_sink *s, int how, struct error *e);
    /* Outside: between hold() and write_held() the caller puts events, and the second writes them, and what waits
     * besides, before it returns. While writing fails they wait as others do. */
    void (*hold)(struct event_sink *s);
    void (*write_held)(struct event_sink *s);
    /* Outside: writes what is waiting and frees s. *lost: events that could not be written. */
    int (*stop)(struct event_sink *s, uint64_t *lost, struct error *e);
    /* In a forked child: closes the file there. 1: s is freed; 0: what the parent's threads share may be half changed
     * in the child and is left alone, as must be the writer's memory. */
    int (*abandon)(struct event_sink *s);
};

struct event_sink {
    const struct event_sink_operations *operations;
    /* inside */
    struct event_batch batch; /* that records are put into */
    int rotation_failed;      /* set by the sink, cleared by the caller that sees it */
};

/* Between begin() and put(): where the record of up to n bytes goes. */
static inline uint8_t *event_sink_place(const struct event_sink *s)
{
    return s->batch.bytes + s->batch.used;
}

/* file outlives the sink, which owns it until stop(). On error *out is NULL. */
int event_direct_start(struct event_sink **out, struct event_file *file, const struct event_sink_options *options,
                       struct error *e);
int event_queue_start(struct event_sink **out, struct event_file *file, const struct event_sink_options *options,
                      struct error *e);

#endif
