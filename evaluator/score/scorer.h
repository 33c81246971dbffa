/*
 * scorer.h - evaluates a checkpoint in the calling thread: a table of calls. thread_runner.h makes a runner of it. One
 * thread at a time.
 */
#ifndef EVALUATOR_SCORE_SCORER_H
#define EVALUATOR_SCORE_SCORER_H

#include "base/error.h"
#include "evaluator/score/evaluation.h"
#include "evaluator/score/runner.h"

/* Called between batches with the share done so far, 0..1. Not 0: stop at once. */
typedef int scorer_tick(void *context, double share);

enum { SCORER_STOPPED = 1 };

struct scorer {
    const char *name;
    /* Loads the weights; all of them, or an error. *weights: which were used. */
    int (*load)(void *context, const struct runner_job *job, enum evaluation_weights *weights, struct error *e);
    /* OK and *out, to be released; SCORER_STOPPED if tick said so; or an error. *out must be empty. */
    int (*evaluate)(void *context, scorer_tick *tick, void *tick_context, struct evaluation *out, struct error *e);
    void (*free)(void *context);
    void *context;
};

#endif
