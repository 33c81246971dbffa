/*
 * worker_groups.h - which workers push to the parameter servers together: those of one host, whose sum is made there,
 * or each alone. A server knows groups only by the messages of their first workers. Pure.
 */
#ifndef TRAINER_SERVER_WORKER_GROUPS_H
#define TRAINER_SERVER_WORKER_GROUPS_H

#include "base/error.h"
#include "trainer/collective/reduction.h"

struct worker_groups {
    int workers, count;
    int together;               /* 1: by host; 0: each worker alone */
    int *of;                    /* (workers) the number of each one's group */
    int *first;                 /* (count) the first worker of each; ascending */
    int *size;                  /* (count) */
    struct reduction reduction; /* of what they push: a group is a worker of it. Of one host: a single vector */
};

/*
 * host[w]: the number of worker w's host, in the order of their first workers; it must be that adding first by host
 * keeps the order of r (lanes_keep_order). NULL: each worker is alone, and pushes the vectors that r gives it.
 * ERR_NOMEM. worker_groups_release() it, also after an error.
 */
int worker_groups_init(struct worker_groups *out, const struct reduction *r, const int *host, struct error *e);
void worker_groups_release(struct worker_groups *g); /* zeroed is fine */

/* The next worker after `worker` in its group; -1: none. */
int worker_groups_next(const struct worker_groups *g, int worker);

#endif
