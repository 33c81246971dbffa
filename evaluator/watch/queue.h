/*
 * queue.h - the whole checkpoints that wait for evaluation, lowest step first, each with its files held open; and a
 * record of those seen before, by name and digest. One thread at a time.
 */
#ifndef EVALUATOR_WATCH_QUEUE_H
#define EVALUATOR_WATCH_QUEUE_H

#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

/* what queue_offer() takes and queue_take() gives */
struct queue_item {
    struct checkpoint_identity checkpoint;
    enum checkpoint_kind kind;
    struct opened_checkpoint *opened; /* owned; holds the descriptors. NULL: pinned, opened later */
    char *pinned;                     /* owned: its path in pin.h; NULL: not pinned */
    uint64_t pinned_bytes;
    double found;      /* wall seconds when it was found whole */
    double written;    /* wall seconds of its last change: of the index file, where there is one */
    double modified;   /* the same for the content, which a move does not change */
    int again;         /* 1: it was taken before, and changed during its evaluation, or came back */
    int lack_said;     /* 1: it was logged that it waits for a resource, or cannot be read */
    int unread;        /* how often in a row it could not be read during its evaluation */
    double not_before; /* monotonic: when it may be taken; 0: at once */
};

struct queue;

enum { QUEUE_KNOWN = 0, QUEUE_ADDED = 1 };

/* limit > 0: how many may wait with open files. On OK *out is yours until queue_free(), which closes what still waits
 * and is fine with NULL. */
int queue_new(struct queue **out, size_t limit, struct error *e);
void queue_free(struct queue *q);

/* Records that this checkpoint needs no evaluation. May be repeated. */
int queue_remember(struct queue *q, const char *name, uint64_t digest, struct error *e);
/* Records that it needs one after all. */
void queue_forget(struct queue *q, const char *name, uint64_t digest);
int queue_knows(struct queue *q, const char *name, uint64_t digest);
/* A known version of that name was evaluated by `wall`; evaluated: the latest such time, 0: none. */
void queue_was_evaluated(struct queue *q, const char *name, double wall);
double queue_evaluated(struct queue *q, const char *name);
/* 1 if any version of that name is known. */
int queue_knows_name(struct queue *q, const char *name);

/* QUEUE_ADDED: the queue owns item now, and knows it. QUEUE_KNOWN: seen before; the caller keeps item, as with
 * ERR_NOMEM. The queue must not be full. */
int queue_offer(struct queue *q, const struct queue_item *item, struct error *e);
/* What was offered can be taken from here on: what one look finds comes together, in whatever order it was found. */
void queue_publish(struct queue *q);
int queue_full(struct queue *q);              /* 1: no more may be offered */
uint64_t queue_pinned_bytes(struct queue *q); /* of those waiting or offered */

size_t queue_count(struct queue *q); /* of those that wait */
double queue_due(struct queue *q);   /* monotonic: when the next may be taken; infinity: none waits */
/* 1 and the item with the lowest step that may be taken now, yours to queue_item_release(); 0: there is none. */
int queue_take(struct queue *q, struct queue_item *out);
/* The same, among the items for which wanted() returns 1. */
int queue_take_if(struct queue *q, int (*wanted)(const struct queue_item *item), struct queue_item *out);
/* Puts an item back in its place after queue_take(); the queue owns it again. ERR_NOMEM: the caller keeps it. */
int queue_return(struct queue *q, const struct queue_item *item, struct error *e);
void queue_item_release(struct queue_item *item); /* keeps a pin on disk */

#endif
