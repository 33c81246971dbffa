/*
 * best_directory.h - EVAL/best/: the best checkpoint, or the N best, and beside them the file `checkpoint` that names
 * them, so that every reader of TensorFlow's checkpoints finds them there, the best one as the newest. Whoever goes by
 * `checkpoint` never finds half of one: it is put there by rename when all files of a checkpoint are, and those that
 * are no longer among the best are deleted after that.
 *
 *   .tmp-DIGEST-FILE   a file of a checkpoint that is being evaluated: a hard link, made before the evaluation, so that
 *                      the trainer may delete the original meanwhile
 *   FILE               once its evaluation is in the ledger and is among the best: the link, renamed; or a copy, where
 *                      links cannot be made (another file system)
 *   .evaluator         which of all these the evaluator has made (best_manifest.h), written before it makes them
 *
 * Nothing else is deleted or overwritten here: what else is there when the directory is opened is a refusal, and what
 * comes later stays. The ledger says which are best; what a killed process left behind is finished or removed by
 * best_directory_recover(). An original that is changed in place, not replaced, changes here, too. A hard link changes
 * the time of the original's inode: who goes by that looks at it again, and finds the same content. One thread.
 */
#ifndef EVALUATOR_KEEP_BEST_DIRECTORY_H
#define EVALUATOR_KEEP_BEST_DIRECTORY_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"

#include <stddef.h>

struct best_checkpoint {
    const char *directory; /* where it was found: NAME.index and NAME.data-* of a bundle; or a file or directory NAME */
    struct checkpoint_identity checkpoint; /* its step does not matter */
    const char *kept;      /* its name here; NULL: the same. No two that are wanted have the same */
    int volatile_name;     /* 1: what has its name is overwritten, so it is copied and not linked */
};

struct best_directory;

/* Makes the directory; `directory` is copied. On OK *out is yours until best_directory_close(). ERR_ARG, ERR_CORRUPT:
 * something there is not the evaluator's, and e names it. */
int best_directory_open(struct best_directory **out, const char *directory, struct error *e);
void best_directory_close(struct best_directory *b); /* NULL is fine */

/* After opening, before all else: wanted is what the ledger says, the best one first; count 0 where it has none. OK:
 * the directory holds the best one, and those of the others that could be had; or nothing at all has been best yet.
 * Not OK: the best one cannot be had any more, and what was whole there before still is. */
int best_directory_recover(struct best_directory *b, const struct best_checkpoint *wanted, size_t count,
                           struct error *e);

/* Before an evaluation: takes links. What goes wrong is seen by promote. Twice is fine. */
void best_directory_reserve(struct best_directory *b, const struct best_checkpoint *c);
/* It is not among the best. */
void best_directory_drop(struct best_directory *b, const struct best_checkpoint *c);
/* wanted is what the ledger says, the best one first, and wanted[new] has just come to be among them; those that are
 * not here already are left out. ERR_IO, ERR_CORRUPT: its files are gone or have changed, or there is no room; those
 * before are still there, whole, but for one of the same name. */
int best_directory_promote(struct best_directory *b, const struct best_checkpoint *wanted, size_t count, size_t new,
                           struct error *e);

#endif
