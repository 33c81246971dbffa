/*
 * checkpoint_ready.h - reads the companions of the checkpoints in a directory, which say when a checkpoint is ready and
 * what its step is: markers, FILE of --ready latest:FILE, FILE of --step-from FILE:KEY. The rules are in
 * checkpoint_source.h. fd is open on the directory. Thread-safe.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_READY_H
#define EVALUATOR_WATCH_CHECKPOINT_READY_H

#include "base/error.h"
#include "evaluator/watch/checkpoint_source.h"

#include <stdint.h>

/* The step named by FILE of --ready latest:FILE; -1: none, or there is no such rule. */
int64_t checkpoint_ready_latest(const struct checkpoint_source *s, int fd);

/* A stamp of a checkpoint (of a bundle, its index) and all its companions; *changed: wall, the last change. 0: it does
 * not exist. latest: from the call above. */
uint64_t checkpoint_ready_stamp(const struct checkpoint_source *s, int fd, enum checkpoint_kind kind, const char *name,
                                int64_t step, int64_t latest, double *changed);

enum checkpoint_readiness {
    CHECKPOINT_UNMARKED, /* a companion is missing or incomplete; why has a sentence */
    CHECKPOINT_MARKED,
    CHECKPOINT_SETTLING, /* all are there, but one has just changed; the item's patience says how long to wait */
};
/* Looks at everything that must exist before an item is opened, and records its stamp in the item. now, wall: one
 * moment on both clocks, the same for all items of a look, so that the first to be marked never settles last. */
enum checkpoint_readiness checkpoint_ready_look(const struct checkpoint_source *s, const char *directory, int fd,
                                                struct sighting *item, double now, double wall, struct error *why);

/* The number that FILE of --step-from gives for the checkpoint NAME. */
int checkpoint_ready_number(const struct checkpoint_source *s, const char *directory, int fd, const char *name,
                            int64_t *number, struct error *e);

#endif
