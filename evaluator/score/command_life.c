#include "evaluator/score/command_life.h"

#include <math.h>

/* How long processes left by a command have from SIGTERM to SIGKILL, and a pipe held by others may stay open. */
#define LEFT_BEHIND_SECONDS 1.0

void command_life_begin(struct command_life *l, double now)
{
    *l = (struct command_life){ .started = now, .kill_at = INFINITY };
}

enum command_act command_life_look(struct command_life *l, const struct command_facts *facts, double timeout,
                                   double now)
{
    enum command_act act = COMMAND_WAIT;

    if (!l->leaving && (facts->gone || facts->ended)) {
        l->leaving = 1;
        l->kill_at = l->leave_at = now + LEFT_BEHIND_SECONDS;
    }
    if (facts->gone)
        return !facts->open || now >= l->leave_at ? COMMAND_OVER : COMMAND_WAIT;
    if (!l->leaving && !l->late && timeout > 0 && now - l->started >= timeout) {
        l->late = 1;
        act = command_life_stop(l, COMMAND_GRACE_SECONDS, now);
    }
    if (now < l->kill_at && !(l->leaving && !facts->open))
        return act;
    l->kill_at = INFINITY;
    return COMMAND_KILL;
}

enum command_act command_life_stop(struct command_life *l, double grace, double now)
{
    const int told = !isinf(l->kill_at);

    if (l->leaving)
        return COMMAND_WAIT;
    l->kill_at = fmin(l->kill_at, now + grace);
    return told ? COMMAND_WAIT : COMMAND_TERMINATE;
}

double command_life_due(const struct command_life *l, double timeout, double now)
{
    const double due = l->kill_at - now;

    return !l->leaving && !l->late && timeout > 0 ? fmin(due, l->started + timeout - now) : due;
}
