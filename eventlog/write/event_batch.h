/*
 * event_batch.h - whole records waiting in memory, end to end. One thread at a time.
 */
#ifndef EVENTLOG_WRITE_EVENT_BATCH_H
#define EVENTLOG_WRITE_EVENT_BATCH_H

#include <stddef.h>
#include <stdint.h>

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

#endif
