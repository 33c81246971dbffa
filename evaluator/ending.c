#include "evaluator/ending.h"

#include <stddef.h>
#include <string.h>

const char *ending_reason(const struct ending_rules *rules, const struct ending_facts *facts)
{
    if (rules->max_evaluations && facts->evaluations >= rules->max_evaluations)
        return "the number of --max-evaluations is reached";
    if (rules->once)
        return "all existing checkpoints have been evaluated (--once)";
    if (rules->until_step >= 0 && facts->highest_step >= rules->until_step)
        return "the step of --until-step has been evaluated";
    if (facts->done_file_there)
        return "the file of --done-file exists";
    if (facts->process_gone)
        return "the process of --pid is gone";
    if (rules->idle_timeout > 0 && facts->idle_seconds >= rules->idle_timeout)
        return "no new checkpoint within --idle-timeout";
    if (!rules->forever && facts->training == TRAINING_FINISHED)
        return "training.json says finished";
    if (!rules->forever && !rules->wait_for_restart && facts->training == TRAINING_STOPPED)
        return "training.json says stopped";
    return NULL;
}

static int same(const struct training_state *a, const struct training_state *b)
{
    return !strcmp(a->state, b->state) && !strcmp(a->process.host, b->process.host) &&
           a->process.pid == b->process.pid && a->updated == b->updated && a->started == b->started &&
           a->global_step == b->global_step;
}

static enum ending_training_end end_of(const struct training_state *state)
{
    if (state && !strcmp(state->state, "finished"))
        return TRAINING_FINISHED;
    return state && !strcmp(state->state, "stopped") ? TRAINING_STOPPED : TRAINING_GOES_ON;
}

enum ending_training_end ending_training_ended(struct ending_training *t, const struct training_state *state,
                                               double now)
{
    const enum ending_training_end end = end_of(state);

    if (!t->looked) {
        t->looked = 1;
        t->there = state != NULL;
        t->first_seen = now;
        if (state)
            t->first = *state;
        if (!end)
            t->changed = 1;
    }
    if (t->there != (state != NULL) || (state && !same(&t->first, state)))
        t->changed = 1;
    return t->changed || now - t->first_seen >= (double)ENDING_SETTLE_SECONDS ? end : TRAINING_GOES_ON;
}
