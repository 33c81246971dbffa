/*
 * command_attempts.h - decides when the next attempt of a command at a checkpoint begins, and what the end of an
 * attempt means for the checkpoint: the deciding half of command_runner.h. Pure; times are monotonic seconds.
 *
 *              step(): BEGIN                end(): FAILED with retries left, or LACK
 *   WAITING -------------------> RUNNING --------------------------------------------------> WAITING, for a pause
 *      | step(): GIVE_UP            | end(): all else
 *      v                            v
 *     IDLE <------------------------'
 */
#ifndef EVALUATOR_SCORE_COMMAND_ATTEMPTS_H
#define EVALUATOR_SCORE_COMMAND_ATTEMPTS_H

#include "evaluator/score/runner.h"

#include <stdint.h>

enum command_phase { ATTEMPTS_IDLE, ATTEMPTS_WAITING, ATTEMPTS_RUNNING };

/* zero: idle. Only command_attempts.c changes it, except stopping */
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

#endif
