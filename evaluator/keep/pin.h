/*
 * pin.h - keeps checkpoints while they wait, so that a trainer may delete them: hard links to their files (copies where
 * links cannot be, on another file system) in EVAL/pinned/KIND-STEP-DIGEST/, made under a temporary name and renamed,
 * so they are whole or not there. A pin outlives a crash: the next start finds it and evaluates it. What is overwritten
 * in place, and not replaced, changes in a linked pin as well, and not in a copy.
 */
#ifndef EVALUATOR_KEEP_PIN_H
#define EVALUATOR_KEEP_PIN_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"
#include "evaluator/files/file_tree.h"
#include "evaluator/files/opened_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct pin {
    enum checkpoint_kind kind;
    struct checkpoint_identity checkpoint; /* with its digest */
};

/* Pins the checkpoint DIRECTORY/NAME; *path becomes where it is now (of a bundle the prefix), yours to free, and *bytes
 * how much it would take if the original was deleted. ERR_IO: part of it is gone, or the disk is full; nothing is left
 * behind. */
int pin_make(const char *eval_directory, const char *directory, const struct pin *pin, enum file_tree_means means,
             char **path, uint64_t *bytes, struct error *e);
/* Removes the pin that holds this path. */
void pin_remove(const char *path);

/* Called for each pin an earlier process left; path is borrowed. Not OK ends the walk. */
typedef int pin_visit(void *context, const struct pin *pin, const char *path, uint64_t bytes, struct error *e);
/* Visits them in no order, and removes what was never finished. */
int pin_recover(const char *eval_directory, pin_visit *visit, void *context, struct error *e);

#endif
