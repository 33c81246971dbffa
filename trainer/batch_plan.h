/*
 * batch_plan.h - how the images of a step are shared among the workers. Pure.
 *
 * Without micro-shards each worker has a batch of the same size. With micro-shards the images of a step, the global
 * batch, are numbered, and cut into S equal micro-shards; worker r of n has micro-shards floor(r S / n) to
 * floor((r + 1) S / n) of them. So which images are in a micro-shard does not depend on n, and n need not divide S; but
 * then workers have unequal parts, and only the global batch can be given. Source: strategies, "Bitwise reproducible
 * reduction", rule 1.
 *
 * The threads of a worker share its micro-shards. Without micro-shards each computes an equal part of the worker's
 * batch, which are then leaves of a tree of its own: of one worker the same as if there were as many micro-shards.
 */
#ifndef TRAINER_BATCH_PLAN_H
#define TRAINER_BATCH_PLAN_H

#include "base/error.h"
#include "trainer/collective/reduction_tree.h"

#include <stddef.h>
#include <stdint.h>

/* as the command line has it */
struct batch_sizes {
    int batch_size;   /* images of a worker and step; ignored if there is a global batch */
    int global_batch; /* images of all workers and a step; 0: follows from batch_size */
    int micro_shards; /* of all workers and a step; 0: none, a worker's batch is computed at once */
    int synchronous;  /* 0: each worker's micro-shards are a tree of their own */
    int threads;      /* of a worker, which share its images: without micro-shards in equal parts; 0: one */
};

struct batch_plan {
    int64_t together; /* images of all workers and a step */
    int most;         /* images of the worker that has most */
    int unit;         /* images computed at once: of a micro-shard, or of a worker's batch */
    int count;        /* images of this worker; 0: a server */
    int64_t first;    /* with micro-shards: its images are [first, first + count) of the global batch */
    int threads;      /* of this worker, and of each other */
    int node_count;   /* with micro-shards or threads: nodes that it hands on (reduction_tree.h); 0: none */
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
};

/* Makes an update of `aggregate` batches, 0: one of each worker: with more than there are workers each batch is a
 * micro-shard, and each worker computes an equal number of them, or one more. ERR_ARG: the step is cut otherwise. */
int batch_sizes_aggregate(struct batch_sizes *s, int aggregate, int workers, struct error *e);

/* worker: -1: a server. ERR_ARG, with a sentence for the user. */
int batch_plan_make(struct batch_plan *out, const struct batch_sizes *sizes, int workers, int worker, struct error *e);

/* " (3 x 40 to 56, 8 micro-shards, 2 threads each)": how the images of a step are shared by `together` workers, 1 if
 * each makes steps of its own; "" if they are not. */
void batch_plan_text(const struct batch_plan *p, int micro_shards, int workers, int together, char *text, size_t size);

#endif
