/*
 * table_groups.h - which workers exchange rows with the servers of tables together: those of one host, whose first
 * worker asks and pushes for all of them, or each alone. Pure.
 *
 * A group pushes few sums: without micro-shards one, with them one for each node of the tree (reduction_tree.h) that
 * the micro-shards of its workers make whole. These may be any workers: where a host does not have a whole part of the
 * tree it pushes more sums, and the bits stay.
 *
 *   8 micro-shards, 4 workers   0+1 on host a, 2+3 and 4+5 on host b, 6+7 on host a
 *   host a pushes               0+1 and 6+7
 *   host b pushes               2+3 and 4+5: no node of the tree has both
 */
#ifndef TRAINER_SERVER_TABLE_GROUPS_H
#define TRAINER_SERVER_TABLE_GROUPS_H

#include "base/error.h"
#include "trainer/collective/reduction.h"

struct table_groups {
    int workers, count;
    int together;      /* 1: by host; 0: each worker alone */
    int *of;           /* (workers) the number of each one's group */
    int *first, *size; /* (count) the first worker of each group, which speaks for it; how many it has */
    int *vectors;      /* (count + 1) group k pushes sums [vectors[k], vectors[k + 1]) */
    int *place;        /* (sums) where each one is among all, in the order in which they are added */
    int *parts;        /* (sums) how many of its workers' vectors each one is the sum of */
    struct reduction
        pushed; /* all sums, in that order; its `workers` are all workers, and `first` is NULL if together */
};

/* r: the workers' vectors. host[w]: the number of worker w's host, in the order of their first workers; NULL: each
 * worker is alone, and pushes the vectors that r gives it. ERR_NOMEM. table_groups_release() it, also after an error.
 */
int table_groups_init(struct table_groups *out, const struct reduction *r, const int *host, struct error *e);
void table_groups_release(struct table_groups *g); /* zeroed is fine */

/* How many sums group k pushes. */
int table_groups_vectors(const struct table_groups *g, int k);
/* The next worker after `worker` in its group; -1: none. */
int table_groups_next(const struct table_groups *g, int worker);

#endif
