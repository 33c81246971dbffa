/*
 * thread_runner.h - a runner of one slot: a scorer in a thread of its own, while the loop goes on watching.
 */
#ifndef EVALUATOR_SCORE_THREAD_RUNNER_H
#define EVALUATOR_SCORE_THREAD_RUNNER_H

#include "evaluator/score/runner.h"
#include "evaluator/score/scorer.h"

/* The scorer is the runner's from now on, also on an error: it is used in the runner's thread alone, and freed with the
 * runner. ERR_NOMEM, ERR_IO: no thread or descriptor. */
int thread_runner_new(struct runner *out, const struct scorer *scorer, struct error *e);

#endif
