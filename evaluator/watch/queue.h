/*
 * queue.h - checkpoints that are whole and wait for their evaluation, lowest step first, each with its files held
 * open; and the memory of which ones were seen before, by name and digest. One thread at a time.
 */
#ifndef EVALUATOR_WATCH_QUEUE_H
#define EVALUATOR_WATCH_QUEUE_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"
#include "evaluator/files/opened_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct queue_item {
    struct checkpoint_identity checkpoint;
    enum checkpoint_kind kind;
    struct opened_checkpoint *opened; /* owned; holds the descriptors. NULL: it is pinned, and opened later */
    char *pinned;                 /* owned: where pin.h keeps it; NULL: it is not pinned */
    uint64_t pinned_bytes;
    double found;                 /* wall seconds when it was found whole */
    double written;               /* wall seconds of its last change: of the index file, where there is one */
    double modified;              /* the same of the content, which a move does not change */
    int again;                    /* 1: it was taken before, and changed while it was evaluated, or came back */
    int lack_said;                /* that it waits for what the machine lacks */
};

struct queue {
    struct queue_item **items; /* ascending by step; equal steps in order of arrival */
    size_t count, capacity;
    size_t limit;              /* how many may wait with open files */
    struct queue_known {
        char *name;            /* owned */
        uint64_t digest;
    } *known;                  /* ascending by name, then digest */
    size_t known_count, known_capacity;
};

enum { QUEUE_KNOWN = 0, QUEUE_ADDED = 1 };

/* limit > 0. */
void queue_init(struct queue *q, size_t limit);
void queue_release(struct queue *q); /* closes what still waits */

/* Remembers that this checkpoint needs no evaluation (any more). Remembering twice is fine. */
int queue_remember(struct queue *q, const char *name, uint64_t digest, struct error *e);
/* It needs one after all. */
void queue_forget(struct queue *q, const char *name, uint64_t digest);
int queue_knows(const struct queue *q, const char *name, uint64_t digest);
/* 1 if any version of that name is known. */
int queue_knows_name(const struct queue *q, const char *name);

int queue_full(const struct queue *q);

/* QUEUE_ADDED: item is the queue's now, and known. QUEUE_KNOWN: seen before; item stays the caller's, as it does with
 * ERR_NOMEM. The queue must not be full. */
int queue_offer(struct queue *q, const struct queue_item *item, struct error *e);

/* 1 and the item with the lowest step, yours to queue_item_release(); 0: nothing waits. */
int queue_take(struct queue *q, struct queue_item *out);
/* The same of the one at that place, which is there. */
void queue_take_at(struct queue *q, size_t i, struct queue_item *out);
/* Back to its place after queue_take(); item is the queue's then. ERR_NOMEM: it stays the caller's. */
int queue_return(struct queue *q, const struct queue_item *item, struct error *e);
uint64_t queue_pinned_bytes(const struct queue *q); /* of all that wait */
void queue_item_release(struct queue_item *item); /* a pin stays on the disk */

#endif
