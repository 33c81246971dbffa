/*
 * command_runner.h - a runner that evaluates checkpoints with a command, several at a time. Each command runs in a
 * process group of its own, without standard input; metrics are read from its standard output (metric_output.h), and
 * both outputs are kept in EVAL/logs/<step>-<name>.log, to which later attempts append. The words of the command are
 * split as in command_words.h. These placeholders and environment variables are set:
 *
 *   {checkpoint}  EVALUATOR_CHECKPOINT  the path of the checkpoint: "CKPT/model.ckpt-700"
 *   {step}        EVALUATOR_STEP        its global step
 *   {index}       EVALUATOR_INDEX       how many were evaluated before it
 *   {eval_dir}    EVALUATOR_EVAL_DIR    where the ledger is
 *   {name}        EVALUATOR_NAME        the base name of the checkpoint: "model.ckpt-700"
 *
 * An attempt fails if the command cannot be started, ends with a status other than 0 or by a signal, or runs longer
 * than the timeout: then its group gets SIGTERM, and SIGKILL COMMAND_GRACE_SECONDS later. Failed attempts are repeated
 * up to `retries` times, after 1, 2, 4, ... seconds (60 at most). Output without a metric, or with one named twice, is
 * not retried. The log keeps 16 MiB of an attempt's standard output. Processes that a command leaves in its group are
 * ended with it. If this process dies, the command is killed.
 */
#ifndef EVALUATOR_SCORE_COMMAND_RUNNER_H
#define EVALUATOR_SCORE_COMMAND_RUNNER_H

#include "evaluator/score/runner.h"

#include <stdint.h>

/* ---- command attempts -------------------------------------------------------------------------------------------- */

/*
 * Decides when the next attempt of a command at a checkpoint begins, and what the end of an
 * attempt means for the checkpoint: the deciding half of command_runner.h. Pure; times are monotonic seconds.
 *
 *              step(): BEGIN                end(): FAILED with retries left, or LACK
 *   WAITING -------------------> RUNNING --------------------------------------------------> WAITING, for a pause
 *      | step(): GIVE_UP            | end(): all else
 *      v                            v
 *     IDLE <------------------------'
 */

enum command_phase { ATTEMPTS_IDLE, ATTEMPTS_WAITING, ATTEMPTS_RUNNING };

/* zero: idle. Only command_runner.c changes it, except stopping */
struct command_attempts {
    enum command_phase phase;
    int64_t number;  /* of the current or last attempt, from 1 */
    double retry_at; /* WAITING */
    int stopping;    /* 1: set by the caller: no more attempts */
};

/* The first one is due at once. */
void command_attempts_start(struct command_attempts *a);

enum command_step {
    ATTEMPTS_BEGIN, /* it is RUNNING now; if it cannot be started, call end() */
    ATTEMPTS_LOOK,  /* at the running one */
    ATTEMPTS_SLEEP,
    ATTEMPTS_GIVE_UP, /* it was WAITING, and stopping is set */
};
enum command_step command_attempts_step(struct command_attempts *a, double now);

enum command_outcome {
    ATTEMPT_DONE,
    ATTEMPT_FAILED,  /* another attempt may succeed */
    ATTEMPT_USELESS, /* it succeeded with useless output: another attempt would do no better */
    ATTEMPT_LACK,    /* the machine lacked a resource: does not count as an attempt */
    ATTEMPT_STOPPED,
};
/* gone: the checkpoint no longer exists. RUNNER_BUSY: there will be another attempt at retry_at. */
enum runner_state command_attempts_end(struct command_attempts *a, enum command_outcome outcome, int gone,
                                       int64_t retries, double now);

/* Seconds until step() is due without another event; 0 or less: now; infinity: never. */
double command_attempts_due(const struct command_attempts *a, double now);

/* ---- command runner ---------------------------------------------------------------------------------------------- */

enum { COMMAND_JOBS_MAX = 256 };

struct command_runner_options {
    const char *command;
    int64_t jobs;       /* at a time, 1..COMMAND_JOBS_MAX; 0: 1 */
    double timeout;     /* seconds; 0: none */
    const char *metric; /* the name of a number alone on a line; NULL: it is ignored */
    int64_t retries;
};

/* ERR_ARG: the command cannot be split, or has a misspelled {word}. */
int command_runner_new(struct runner *out, const struct command_runner_options *options, struct error *e);

#endif
