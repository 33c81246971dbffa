/*
 * pin.h - keeps waiting checkpoints so that the trainer may delete them: hard links to their files (copies on another
 * file system) in EVAL/pinned/KIND-STEP-DIGEST/, made under a temporary name and renamed, so a pin is whole or does not
 * exist. A pin survives a crash: the next start finds and evaluates it. A file that is overwritten in place, not
 * replaced, changes in a linked pin as well, but not in a copy.
 */
#ifndef EVALUATOR_RECORD_PIN_H
#define EVALUATOR_RECORD_PIN_H

#include "base/error.h"
#include "evaluator/files/file_tree.h"
#include "evaluator/files/opened_checkpoint.h"

#include <stddef.h>
#include <stdint.h>

struct pin {
    enum checkpoint_kind kind;
    struct checkpoint_identity checkpoint; /* with its digest */
};

/* Pins the checkpoint DIRECTORY/NAME. *path becomes the pinned path (for a bundle, the prefix), yours to free; *bytes
 * is what it would take if the original were deleted. ERR_IO: part of it is gone, or the disk is full; nothing is left
 * behind. */
int pin_make(const char *eval_directory, const char *directory, const struct pin *pin, enum file_tree_means means,
             char **path, uint64_t *bytes, struct error *e);
/* Removes the pin that holds this path. */
void pin_remove(const char *path);

/* Called for each pin that an earlier process left; path is borrowed. Not OK ends the walk. */
typedef int pin_visit(void *context, const struct pin *pin, const char *path, uint64_t bytes, struct error *e);
/* Visits them in no particular order, and removes unfinished ones. */
int pin_recover(const char *eval_directory, pin_visit *visit, void *context, struct error *e);

#endif
