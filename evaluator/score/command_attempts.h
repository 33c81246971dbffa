/*
 * command_attempts.h - the attempts of a command at one checkpoint: when the next begins, and what becomes of the
 * checkpoint by how they end: the deciding half of command_runner.h. Pure; times are monotonic seconds.
 *
 *              step(): BEGIN                end(): FAILED, and it may be repeated, or LACK
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

struct command_attempts { /* zero: idle. Changed by command_attempts.c only, but stopping */
    enum command_phase phase;
    int64_t number;  /* of the attempt that runs, or ran last; from 1 */
    double retry_at; /* WAITING */
    int stopping;    /* 1: set by who wants no more of them */
};

/* The first one is due at once. */
void command_attempts_start(struct command_attempts *a);

enum command_step {
    ATTEMPTS_BEGIN,   /* it is RUNNING; if it cannot be started, say so by end() */
    ATTEMPTS_LOOK,    /* at the one that runs */
    ATTEMPTS_SLEEP,
    ATTEMPTS_GIVE_UP, /* it waited, and is stopping */
};
enum command_step command_attempts_step(struct command_attempts *a, double now);

enum command_outcome {
    ATTEMPT_DONE,
    ATTEMPT_FAILED,  /* it may go well another time */
    ATTEMPT_USELESS, /* it ended well, and what it said is of no use: no other would do better */
    ATTEMPT_LACK,    /* the machine lacked something, which says nothing of the checkpoint: it is no attempt */
    ATTEMPT_STOPPED,
};
/* gone: the checkpoint is not there any more. RUNNER_BUSY: it is tried again, and retry_at says when. */
enum runner_state command_attempts_end(struct command_attempts *a, enum command_outcome outcome, int gone,
                                       int64_t retries, double now);

/* Seconds until step() has something to do of itself, 0 or less: now; infinity for never. */
double command_attempts_due(const struct command_attempts *a, double now);

#endif
