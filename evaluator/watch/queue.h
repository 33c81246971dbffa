/*
 * queue.h - checkpoints that are whole and wait for their evaluation, lowest step first, each with its files held
 * open; and the memory of which ones were seen before, by name and digest. One thread
 * finds them, another one evaluates them: every call is whole by itself, and none waits for a disk.
 */
#ifndef EVALUATOR_WATCH_QUEUE_H
#define EVALUATOR_WATCH_QUEUE_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"
#include "evaluator/files/opened_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct queue_item { /* what is handed from the one to the other */
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

struct queue;

enum { QUEUE_KNOWN = 0, QUEUE_ADDED = 1 };

/* limit > 0: how many may wait with open files. On OK *out is yours until queue_free(), which closes what still waits
 * and is fine with NULL. */
int queue_new(struct queue **out, size_t limit, struct error *e);
void queue_free(struct queue *q);

/* Remembers that this checkpoint needs no evaluation (any more). Remembering twice is fine. */
int queue_remember(struct queue *q, const char *name, uint64_t digest, struct error *e);
/* It needs one after all. */
void queue_forget(struct queue *q, const char *name, uint64_t digest);
int queue_knows(struct queue *q, const char *name, uint64_t digest);
/* 1 if any version of that name is known. */
int queue_knows_name(struct queue *q, const char *name);

/* QUEUE_ADDED: item is the queue's now, and known. QUEUE_KNOWN: seen before; item stays the caller's, as it does with
 * ERR_NOMEM. What is offered waits from queue_publish() on: so what one look finds comes together, whatever the
 * order. */
int queue_offer(struct queue *q, const struct queue_item *item, struct error *e);
void queue_publish(struct queue *q);
int queue_full(struct queue *q);              /* so many wait, or were offered, that no more is to be */
uint64_t queue_pinned_bytes(struct queue *q); /* of the same */

size_t queue_count(struct queue *q); /* of those that wait */
/* 1 and the item with the lowest step, yours to queue_item_release(); 0: nothing waits. */
int queue_take(struct queue *q, struct queue_item *out);
/* The same of those for which wanted() gives 1. */
int queue_take_if(struct queue *q, int (*wanted)(const struct queue_item *item), struct queue_item *out);
/* Back to its place after queue_take(); item is the queue's then. ERR_NOMEM: it stays the caller's. */
int queue_return(struct queue *q, const struct queue_item *item, struct error *e);
void queue_item_release(struct queue_item *item); /* a pin stays on the disk */

#endif
