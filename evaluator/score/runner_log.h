/*
 * runner_log.h - where runners log what is too long for the reason of a failure: EVAL/logs/STEP-NAME.log.
 */
#ifndef EVALUATOR_SCORE_RUNNER_LOG_H
#define EVALUATOR_SCORE_RUNNER_LOG_H

#include "evaluator/score/runner.h"

#include <stddef.h>

/* 1 and the path of the job's log; makes its directory. 0: no log is possible. A long name is cut. */
int runner_log_path(const struct runner_job *job, char *out, size_t size);

#endif
