/*
 * event_queue.h - a thread that writes for many: records wait in a queue of bounded size, a thread of its own hands
 * them to the event_file. All functions may be called from any thread, those "inside" between lock and unlock only.
 * Nothing here is for a forked child, in which the lock may be held for ever.
 */
#ifndef EVENTLOG_WRITE_EVENT_QUEUE_H
#define EVENTLOG_WRITE_EVENT_QUEUE_H

#include "base/error.h"
#include "eventlog/write/event_batch.h"
#include "eventlog/write/event_file.h"

struct event_queue;

struct event_queue_options {
    size_t bytes;         /* that may wait; an event longer than that waits alone */
    size_t batch;         /* bytes that make a write worth while */
    double flush_seconds; /* nothing waits longer */
    int drop;             /* full: drop instead of waiting */
};

/* file belongs to the queue's thread until event_queue_stop(). */
int event_queue_start(struct event_queue **out, struct event_file *file, const struct event_queue_options *options,
                      struct error *e);

void event_queue_lock(struct event_queue *q);
void event_queue_unlock(struct event_queue *q);

/* Inside: OK: *out has room for n bytes; 1: the queue is full and this event is dropped; ERR_IO: it is full because
 * writing fails; ERR_NOMEM. Waits, with the lock given up meanwhile, while the queue is full only because the disk is
 * slow. */
int event_queue_room(struct event_queue *q, size_t n, struct error *e);
/* Inside, after event_queue_room() and before event_queue_put(): what follows belongs into a new file. */
void event_queue_rotate(struct event_queue *q);
/* Inside: where a record of up to n bytes goes. */
uint8_t *event_queue_end(struct event_queue *q);
/* Inside: the n bytes there are one record now. */
void event_queue_put(struct event_queue *q, size_t n);

enum { EVENT_QUEUE_SYNC = 1, EVENT_QUEUE_MAKE_AGAIN = 2 }; /* also by fsync; as event_file_make_again() does */

/* Waits until all that was put before is in the file; or until an attempt at it failed. how: 0, or of the above. Not
 * inside. */
int event_queue_flush(struct event_queue *q, int how, struct error *e);

struct event_queue_state {
    uint64_t queued;         /* events put and not in the file yet */
    struct event_file file;  /* its counters and last error only */
    const char *path;        /* borrowed until the event_file is closed */
};
/* Inside. */
void event_queue_state(struct event_queue *q, struct event_queue_state *state);
/* Inside: 1 once after a new file could not be made. */
int event_queue_rotation_failed(struct event_queue *q);

/* Writes what waits, ends the thread and frees q. *lost: events that could not be written. Not inside. */
int event_queue_stop(struct event_queue *q, uint64_t *lost, struct error *e);

#endif
