#include "evaluator/score/command_attempts.h"

#include <math.h>

enum { BACK_OFF_MAX = 60, BACK_OFF_DOUBLED = 6, LACK_SECONDS = 1 };

void command_attempts_start(struct command_attempts *a)
{
    *a = (struct command_attempts){ .phase = ATTEMPTS_WAITING };
}

enum command_step command_attempts_step(struct command_attempts *a, double now)
{
    if (a->phase != ATTEMPTS_WAITING)
        return ATTEMPTS_LOOK;
    if (a->stopping) {
        a->phase = ATTEMPTS_IDLE;
        return ATTEMPTS_GIVE_UP;
    }
    if (now < a->retry_at)
        return ATTEMPTS_SLEEP;
    a->phase = ATTEMPTS_RUNNING;
    a->number++;
    return ATTEMPTS_BEGIN;
}

static enum runner_state pause_for(struct command_attempts *a, double seconds, double now)
{
    a->phase = ATTEMPTS_WAITING;
    a->retry_at = now + seconds;
    return RUNNER_BUSY;
}

enum runner_state command_attempts_end(struct command_attempts *a, enum command_outcome outcome, int gone,
                                       int64_t retries, double now)
{
    if (outcome == ATTEMPT_LACK) {
        a->number--;
        return pause_for(a, LACK_SECONDS, now);
    }
    if (outcome == ATTEMPT_FAILED && !gone && a->number <= retries)
        return pause_for(a, a->number <= BACK_OFF_DOUBLED ? 1 << (a->number - 1) : BACK_OFF_MAX, now);
    a->phase = ATTEMPTS_IDLE;
    if (outcome == ATTEMPT_DONE || outcome == ATTEMPT_STOPPED)
        return outcome == ATTEMPT_DONE ? RUNNER_DONE : RUNNER_STOPPED;
    return gone ? RUNNER_GONE : RUNNER_FAILED;
}

double command_attempts_due(const struct command_attempts *a, double now)
{
    if (a->phase != ATTEMPTS_WAITING)
        return INFINITY;
    return a->stopping ? 0 : a->retry_at - now;
}
