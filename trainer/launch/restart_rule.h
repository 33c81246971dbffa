/*
 * restart_rule.h - whether a job that has ended should be started again. Pure.
 *
 * A rank failed if the status says so: 1, or 128 and more for a signal, as mpirun and shells have it. Nobody wants a
 * job again that is done (0), whose command line or input is wrong (2), or that was told to end: by a signal to the
 * process that supervises it, to mpirun or to a rank (130, 143, or "stopped" with a signal's name in training.json), or
 * by stop.json. If a start made no checkpoint, the next one would fail at the same place; so only the first failure
 * without a new checkpoint is forgiven.
 */
#ifndef TRAINER_LAUNCH_RESTART_RULE_H
#define TRAINER_LAUNCH_RESTART_RULE_H

#include "checkpoint/directory/training_state.h"

enum restart_verdict {
    RESTART_AGAIN,
    RESTART_NOT_WANTED,  /* nothing needs to be said */
    RESTART_NO_PROGRESS, /* the last start made no checkpoint */
    RESTART_ENOUGH,      /* all restarts are used up */
};

struct restart_facts {
    int status, asked;                  /* of child.h */
    const struct training_state *state; /* training.json afterwards; NULL: there is none */
    int64_t done, most;                 /* restarts so far, and at most */
    int progress;                       /* 1: there is another newest checkpoint than before the last start */
};

enum restart_verdict restart_rule(const struct restart_facts *f);

#endif
