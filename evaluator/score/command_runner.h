/*
 * command_runner.h - a runner that evaluates checkpoints by a command, several at a time. Each runs in a process group
 * of its own, with nothing on its standard input; metrics are read from its standard output (metric_output.h), and both
 * outputs are kept in EVAL/logs/<step>-<name>.log, which later attempts are appended to. The words of the command are
 * split as command_words.h says; in them and in the environment stand
 *
 *   {checkpoint}  EVALUATOR_CHECKPOINT  the path of the checkpoint: "CKPT/model.ckpt-700"
 *   {step}        EVALUATOR_STEP        its global step
 *   {index}       EVALUATOR_INDEX       how many were evaluated before it
 *   {eval_dir}    EVALUATOR_EVAL_DIR    where the ledger is
 *   {name}        EVALUATOR_NAME        the base name of the checkpoint: "model.ckpt-700"
 *
 * An attempt fails if the command cannot be started, ends with another status than 0 or by a signal, or runs longer
 * than the deadline: then its group gets SIGTERM, and SIGKILL COMMAND_GRACE_SECONDS later. It is repeated `retries`
 * times, after 1, 2, 4, ... seconds (60 at most). Output without a metric, or with one named twice, is not repeated.
 * The log keeps 16 MiB of an attempt's standard output. What a command leaves in its group is ended with it. If this
 * process dies, the command is killed.
 */
#ifndef EVALUATOR_SCORE_COMMAND_RUNNER_H
#define EVALUATOR_SCORE_COMMAND_RUNNER_H

#include "evaluator/score/runner.h"

enum { COMMAND_JOBS_MAX = 256 };

struct command_runner_options {
    const char *command;
    size_t jobs;        /* at a time, 1..COMMAND_JOBS_MAX; 0: 1 */
    double timeout;     /* seconds; 0: none */
    int64_t retries;
};

/* ERR_ARG: the command cannot be split, or a {word} in it is a misspelled one. */
int command_runner_new(struct runner *out, const struct command_runner_options *options, struct error *e);

#endif
