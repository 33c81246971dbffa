#include "trainer/launch/restart_rule.h"

#include <signal.h>
#include <string.h>

enum { DONE = 0, USAGE = 2, CANNOT_RUN = 127, BY_SIGNAL = 128 };

static int wanted(const struct restart_facts *f)
{
    if (f->asked || f->status == DONE || f->status == USAGE || f->status == CANNOT_RUN ||
        f->status == BY_SIGNAL + SIGINT || f->status == BY_SIGNAL + SIGTERM)
        return 0;
    if (f->status > BY_SIGNAL || !f->state)
        return 1;
    return strcmp(f->state->state, "finished") != 0 && !(!strcmp(f->state->state, "stopped") && f->state->signal[0]);
}

enum restart_verdict restart_rule(const struct restart_facts *f)
{
    if (!wanted(f))
        return RESTART_NOT_WANTED;
    if (f->done > 0 && !f->progress)
        return RESTART_NO_PROGRESS;
    return f->done < f->most ? RESTART_AGAIN : RESTART_ENOUGH;
}
