#include "evaluator/watch/queue.h"

#include "base/array.h"
#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct queue {
    pthread_mutex_t lock; /* of all below */
    struct waiting {
        struct queue_item item;
        int published;
    } * *items; /* ascending by step; equal steps in order of arrival */
    size_t count, capacity;
    size_t published; /* so many of them are */
    size_t limit;
    struct queue_known {
        char *name; /* owned */
        uint64_t digest;
        double evaluated; /* wall: an earlier process had done so by then; 0: not */
    } * known;            /* ascending by name, then digest */
    size_t known_count, known_capacity;
};

int queue_new(struct queue **out, size_t limit, struct error *e)
{
    struct queue *q = calloc(1, sizeof *q);

    if (!(*out = q))
        return error_memory(e, NULL, "for a queue of checkpoints");
    q->limit = limit;
    pthread_mutex_init(&q->lock, NULL);
    return OK;
}

void queue_item_release(struct queue_item *item)
{
    free(item->pinned);
    opened_checkpoint_close(item->opened);
    memset(item, 0, sizeof *item);
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < q->count; i++) {
        queue_item_release(&q->items[i]->item);
        free(q->items[i]);
    }
    for (size_t i = 0; i < q->known_count; i++)
        free(q->known[i].name);
    free(q->items);
    free(q->known);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* The index of (name, digest) among the known ones, or where it would be inserted. */
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

/* That (name, digest) is at place i. */
static int is_known(const struct queue *q, size_t i, const char *name, uint64_t digest)
{
    return i < q->known_count && q->known[i].digest == digest && !strcmp(q->known[i].name, name);
}

static int remember(struct queue *q, const char *name, uint64_t digest, struct error *e)
{
    size_t i = place(q, name, digest);
    char *copy;

    if (is_known(q, i, name, digest))
        return OK;
    if (!ARRAY_ROOM(q->known, q->known_capacity, q->known_count + 1))
        return error_memory(e, NULL, "to remember %zu checkpoints", q->known_count + 1);
    if (!(copy = strdup(name)))
        return error_memory(e, NULL, "to remember %s", name);
    memmove(q->known + i + 1, q->known + i, (q->known_count - i) * sizeof *q->known);
    q->known[i] = (struct queue_known){ copy, digest, 0 };
    q->known_count++;
    return OK;
}

static int put(struct queue *q, const struct queue_item *item, int published, struct error *e)
{
    struct waiting *new = ARRAY_ROOM(q->items, q->capacity, q->count + 1) ? malloc(sizeof *new) : NULL;
    size_t i = q->count;

    if (!new)
        return error_memory(e, NULL, "for a queue of %zu checkpoints", q->count + 1);
    *new = (struct waiting){ *item, published };
    while (i > 0 && q->items[i - 1]->item.checkpoint.step > item->checkpoint.step)
        i--;
    memmove(q->items + i + 1, q->items + i, (q->count++ - i) * sizeof *q->items);
    q->items[i] = new;
    q->published += (size_t)published;
    return OK;
}

static struct queue *enter(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    return q;
}

static int leave(struct queue *q, int result)
{
    pthread_mutex_unlock(&q->lock);
    return result;
}

int queue_knows(struct queue *q, const char *name, uint64_t digest)
{
    size_t i = place(enter(q), name, digest);

    return leave(q, is_known(q, i, name, digest));
}

int queue_knows_name(struct queue *q, const char *name)
{
    size_t i = place(enter(q), name, 0);

    return leave(q, i < q->known_count && !strcmp(q->known[i].name, name));
}

void queue_was_evaluated(struct queue *q, const char *name, double wall)
{
    size_t i = place(enter(q), name, 0);

    for (; i < q->known_count && !strcmp(q->known[i].name, name); i++)
        q->known[i].evaluated = fmax(q->known[i].evaluated, wall);
    leave(q, 0);
}

double queue_evaluated(struct queue *q, const char *name)
{
    size_t i = place(enter(q), name, 0);
    double wall = 0;

    for (; i < q->known_count && !strcmp(q->known[i].name, name); i++)
        wall = fmax(wall, q->known[i].evaluated);
    leave(q, 0);
    return wall;
}

int queue_remember(struct queue *q, const char *name, uint64_t digest, struct error *e)
{
    return leave(q, remember(enter(q), name, digest, e));
}

void queue_forget(struct queue *q, const char *name, uint64_t digest)
{
    size_t i = place(enter(q), name, digest);

    if (is_known(q, i, name, digest)) {
        free(q->known[i].name);
        memmove(q->known + i, q->known + i + 1, (--q->known_count - i) * sizeof *q->known);
    }
    leave(q, 0);
}

int queue_offer(struct queue *q, const struct queue_item *item, struct error *e)
{
    const struct checkpoint_identity *c = &item->checkpoint;
    int rc = QUEUE_KNOWN;

    enter(q);
    if (!is_known(q, place(q, c->name, c->digest), c->name, c->digest) &&
        (rc = remember(q, c->name, c->digest, e)) == OK && (rc = put(q, item, 0, e)) == OK)
        rc = QUEUE_ADDED;
    return leave(q, rc);
}

void queue_publish(struct queue *q)
{
    enter(q);
    for (size_t i = 0; q->published < q->count && i < q->count; i++)
        q->items[i]->published = 1;
    q->published = q->count;
    leave(q, 0);
}

int queue_full(struct queue *q)
{
    return leave(q, enter(q)->count >= q->limit);
}

uint64_t queue_pinned_bytes(struct queue *q)
{
    uint64_t bytes = 0;

    enter(q);
    for (size_t i = 0; i < q->count; i++)
        bytes += q->items[i]->item.pinned_bytes;
    leave(q, 0);
    return bytes;
}

size_t queue_count(struct queue *q)
{
    size_t count = enter(q)->published;

    leave(q, 0);
    return count;
}

int queue_take_if(struct queue *q, int (*wanted)(const struct queue_item *item), struct queue_item *out)
{
    size_t i = 0;

    enter(q);
    while (i < q->count && !(q->items[i]->published && (!wanted || wanted(&q->items[i]->item))))
        i++;
    if (i == q->count)
        return leave(q, 0);
    *out = q->items[i]->item;
    free(q->items[i]);
    memmove(q->items + i, q->items + i + 1, (--q->count - i) * sizeof *q->items);
    q->published--;
    return leave(q, 1);
}

static int due_now(const struct queue_item *item)
{
    return item->not_before <= clock_monotonic();
}

int queue_take(struct queue *q, struct queue_item *out)
{
    return queue_take_if(q, due_now, out);
}

double queue_due(struct queue *q)
{
    double due = INFINITY;

    enter(q);
    for (size_t i = 0; i < q->count; i++)
        if (q->items[i]->published)
            due = fmin(due, q->items[i]->item.not_before);
    leave(q, 0);
    return due;
}

int queue_return(struct queue *q, const struct queue_item *item, struct error *e)
{
    return leave(q, put(enter(q), item, 1, e));
}
