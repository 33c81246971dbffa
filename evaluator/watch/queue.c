#include "evaluator/watch/queue.h"

#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void queue_init(struct queue *q, size_t limit)
{
    memset(q, 0, sizeof *q);
    q->limit = limit;
}

void queue_item_release(struct queue_item *item)
{
    free(item->pinned);
    opened_checkpoint_close(item->opened);
    memset(item, 0, sizeof *item);
}

void queue_release(struct queue *q)
{
    for (size_t i = 0; i < q->count; i++) {
        queue_item_release(q->items[i]);
        free(q->items[i]);
    }
    for (size_t i = 0; i < q->known_count; i++)
        free(q->known[i].name);
    free(q->items);
    free(q->known);
    memset(q, 0, sizeof *q);
}

/* The place of (name, digest) among the known ones, or where it would go. */
static size_t place(const struct queue *q, const char *name, uint64_t digest)
{
    size_t low = 0, high = q->known_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(q->known[middle].name, name);

        if (order < 0 || (order == 0 && q->known[middle].digest < digest))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int queue_knows(const struct queue *q, const char *name, uint64_t digest)
{
    size_t i = place(q, name, digest);

    return i < q->known_count && q->known[i].digest == digest && !strcmp(q->known[i].name, name);
}

int queue_knows_name(const struct queue *q, const char *name)
{
    size_t i = place(q, name, 0);

    return i < q->known_count && !strcmp(q->known[i].name, name);
}

int queue_remember(struct queue *q, const char *name, uint64_t digest, struct error *e)
{
    size_t i = place(q, name, digest);
    char *copy;

    if (queue_knows(q, name, digest))
        return OK;
    if (!ARRAY_ROOM(q->known, q->known_capacity, q->known_count + 1))
        return error_memory(e, NULL, "to remember %zu checkpoints", q->known_count + 1);
    if (!(copy = strdup(name)))
        return error_memory(e, NULL, "to remember %s", name);
    memmove(q->known + i + 1, q->known + i, (q->known_count - i) * sizeof *q->known);
    q->known[i] = (struct queue_known){ copy, digest };
    q->known_count++;
    return OK;
}

void queue_forget(struct queue *q, const char *name, uint64_t digest)
{
    size_t i = place(q, name, digest);

    if (!queue_knows(q, name, digest))
        return;
    free(q->known[i].name);
    memmove(q->known + i, q->known + i + 1, (--q->known_count - i) * sizeof *q->known);
}

int queue_full(const struct queue *q)
{
    return q->count >= q->limit;
}

int queue_return(struct queue *q, const struct queue_item *item, struct error *e)
{
    struct queue_item *copy = ARRAY_ROOM(q->items, q->capacity, q->count + 1) ? malloc(sizeof *copy) : NULL;
    size_t i = q->count;

    if (!copy)
        return error_memory(e, NULL, "for a queue of %zu checkpoints", q->count + 1);
    *copy = *item;
    while (i > 0 && q->items[i - 1]->checkpoint.step > item->checkpoint.step)
        i--;
    memmove(q->items + i + 1, q->items + i, (q->count++ - i) * sizeof *q->items);
    q->items[i] = copy;
    return OK;
}

int queue_offer(struct queue *q, const struct queue_item *item, struct error *e)
{
    int rc;

    assert(!queue_full(q));
    if (queue_knows(q, item->checkpoint.name, item->checkpoint.digest))
        return QUEUE_KNOWN;
    if ((rc = queue_remember(q, item->checkpoint.name, item->checkpoint.digest, e)) != OK ||
        (rc = queue_return(q, item, e)) != OK)
        return rc;
    return QUEUE_ADDED;
}

void queue_take_at(struct queue *q, size_t i, struct queue_item *out)
{
    *out = *q->items[i];
    free(q->items[i]);
    memmove(q->items + i, q->items + i + 1, (--q->count - i) * sizeof *q->items);
}

int queue_take(struct queue *q, struct queue_item *out)
{
    if (!q->count)
        return 0;
    queue_take_at(q, 0, out);
    return 1;
}

uint64_t queue_pinned_bytes(const struct queue *q)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < q->count; i++)
        bytes += q->items[i]->pinned_bytes;
    return bytes;
}
