/*
 * runner.h - what evaluates a checkpoint: a table of two calls, so that the loop does not know whether it is the
 * built-in models or something else. One thread.
 */
#ifndef EVALUATOR_RUNNER_H
#define EVALUATOR_RUNNER_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/metrics.h"

struct runner_checkpoint {
    const char *name;             /* "model.ckpt-700" */
    const char *directory;        /* where it was found */
    int64_t step;
    struct tensor_bundle *bundle; /* open; borrowed. NULL for checkpoints of other formats */
};

/* Called between batches with the share that is done, 0..1. Not 0: stop at once. */
typedef int runner_tick(void *context, double share);

enum { RUNNER_STOPPED = 1 };

struct runner {
    const char *name;
    /* Takes the weights in; all of them or an error. *weights: which were used, static: "variables", ... */
    int (*load)(void *context, const struct runner_checkpoint *checkpoint, const char **weights, struct error *e);
    /* OK, RUNNER_STOPPED because tick said so, or an error. */
    int (*evaluate)(void *context, runner_tick *tick, void *tick_context, struct metrics *out, struct error *e);
    void (*free)(void *context);
    void *context;
};

#endif
