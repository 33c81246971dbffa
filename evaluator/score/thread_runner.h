/*
 * thread_runner.h - a runner with one slot: a scorer in a thread of its own, while the loop continues to watch.
 */
#ifndef EVALUATOR_SCORE_THREAD_RUNNER_H
#define EVALUATOR_SCORE_THREAD_RUNNER_H

#include "evaluator/score/runner.h"
#include "evaluator/score/scorer.h"

/* Takes over the scorer, also on an error: it is used only in the runner's thread, and freed with the runner.
 * ERR_NOMEM, ERR_IO: no thread or descriptor. */
int thread_runner_new(struct runner *out, const struct scorer *scorer, struct error *e);

#endif
