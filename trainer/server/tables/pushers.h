/*
 * pushers.h - which workers send the sums of rows to servers: all, each its own; or, with local aggregation, the first
 * worker of each host, which adds those of its host's workers. Pure.
 */
#ifndef TRAINER_SERVER_TABLES_PUSHERS_H
#define TRAINER_SERVER_TABLES_PUSHERS_H

#include "base/error.h"
#include "trainer/collective/reduction.h"

struct pushers {
    int count;
    int *rank;                  /* (count) ascending */
    int *of;                    /* (workers) index of the pusher to which a worker's sums go, perhaps itself */
    int *members;               /* (count) workers whose sums a pusher sends, itself included */
    struct reduction reduction; /* the vectors that pushers send, and how they are added: the `workers` of a pusher */
};

/* reduction: of the workers. host[w]: number of worker w's host, in the order of their first workers; NULL: no local
 * aggregation. The bits of the sums are the same if host is, or lanes_keep_order(). ERR_NOMEM. On OK
 * pushers_release() it. */
int pushers_init(struct pushers *out, const struct reduction *reduction, const int *host, struct error *e);
void pushers_release(struct pushers *p); /* zeroed is fine */

#endif
