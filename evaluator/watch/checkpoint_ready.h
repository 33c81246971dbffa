/*
 * checkpoint_ready.h - what goes with the checkpoints of a directory and says when they are ready and of which step
 * they are: markers, FILE of --ready latest:FILE, FILE of --step-from FILE:KEY. The rules are ready_rule.h and
 * step_rule.h. fd is open on the directory. Thread-safe.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_READY_H
#define EVALUATOR_WATCH_CHECKPOINT_READY_H

#include "base/error.h"
#include "evaluator/watch/checkpoint_source.h"

#include <stdint.h>

/* The step that FILE of --ready latest:FILE names; -1: none, or there is no such rule. */
int64_t checkpoint_ready_latest(const struct checkpoint_source *s, int fd);

/* What a checkpoint and all that goes with it look like from outside; *changed: wall, the last change. Of a bundle it
 * is the index that counts. 0: it is not there. latest: from the call above. */
uint64_t checkpoint_ready_stamp(const struct checkpoint_source *s, int fd, enum checkpoint_kind kind, const char *name,
                                int64_t step, int64_t latest, double *changed);

enum checkpoint_readiness {
    CHECKPOINT_UNMARKED, /* something is not there, or not whole; why */
    CHECKPOINT_MARKED,
    CHECKPOINT_SETTLING, /* all is there, and something has just changed; the item's patience says how long to wait */
};
/* Looks at all that must be there before an item is opened, and notes in it what that looks like. now, wall: one moment
 * on both clocks, the same for all items of a look, so that what was marked first never settles last. */
enum checkpoint_readiness checkpoint_ready_look(const struct checkpoint_source *s, const char *directory, int fd,
                                                struct sighting *item, double now, double wall,
                                                struct error *why);

/* The number that FILE of --step-from says for the checkpoint NAME. */
int checkpoint_ready_number(const struct checkpoint_source *s, const char *directory, int fd, const char *name,
                            int64_t *number, struct error *e);

#endif
