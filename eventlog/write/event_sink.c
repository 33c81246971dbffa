#include "eventlog/write/event_sink.h"

#include <stdlib.h>

/* ---- event batch ------------------------------------------------------------------------------------------------- */

void event_batch_release(struct event_batch *b)
{
    free(b->bytes);
    *b = (struct event_batch)EVENT_BATCH_EMPTY;
}

int event_batch_reserve(struct event_batch *b, size_t n, size_t limit)
{
    size_t capacity = b->capacity ? b->capacity : 1024;
    uint8_t *bytes;

    if (n <= b->capacity - b->used)
        return 0;
    if (n > SIZE_MAX / 2 - b->used)
        return -1;
    while (capacity - b->used < n && capacity < limit)
        capacity *= 2;
    if (capacity < b->used || capacity - b->used < n || capacity > 2 * limit)
        capacity = b->used + n;
    if (!(bytes = realloc(b->bytes, capacity)))
        return -1;
    b->bytes = bytes;
    b->capacity = capacity;
    return 0;
}

void event_batch_shrink(struct event_batch *b, size_t keep)
{
    uint8_t *bytes;

    if (b->used || b->capacity <= keep || !(bytes = realloc(b->bytes, keep)))
        return;
    b->bytes = bytes;
    b->capacity = keep;
}
