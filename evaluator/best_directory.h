/*
 * best_directory.h - EVAL/best/: the best checkpoint, and beside it the file `checkpoint` that names it, so that every
 * reader of TensorFlow's checkpoints finds it there. Whoever goes by `checkpoint` never finds half of one: it is put
 * there by rename when all files of the checkpoint are, and those of the one before are deleted after that.
 *
 *   .tmp-DIGEST-FILE   a file of a checkpoint that is being evaluated: a hard link, made before the evaluation, so that
 *                      the trainer may delete the original meanwhile
 *   FILE               once its evaluation is in the ledger and is the best: the link, renamed; or a copy, where links
 *                      cannot be made (another file system)
 *
 * The ledger says which is best; what a killed process left behind is finished or removed by best_directory_recover().
 * An original that is changed in place, not replaced, changes here, too. A hard link changes the time of the original's
 * inode: who goes by that looks at it again, and finds the same content. One thread.
 */
#ifndef EVALUATOR_BEST_DIRECTORY_H
#define EVALUATOR_BEST_DIRECTORY_H

#include "base/error.h"

#include <stdint.h>

struct best_checkpoint {
    const char *directory; /* where it was found */
    const char *name;      /* NAME.index and NAME.data-* of a bundle; or a file or directory NAME */
    uint64_t digest;       /* of a bundle: as tensor_bundle_digest() */
};

struct best_directory;

/* Makes the directory; `directory` is copied. On OK *out is yours until best_directory_close(). */
int best_directory_open(struct best_directory **out, const char *directory, struct error *e);
void best_directory_close(struct best_directory *b); /* NULL is fine */

/* After opening, before all else: best is what the ledger says, NULL where it has none. OK: the directory holds it, or
 * nothing at all has been best yet. Not OK: it cannot be had any more, and what was whole there before still is. */
int best_directory_recover(struct best_directory *b, const struct best_checkpoint *best, struct error *e);

/* Before an evaluation: takes links. What goes wrong is seen by promote. Twice is fine. */
void best_directory_reserve(struct best_directory *b, const struct best_checkpoint *c);
/* It was not the best. */
void best_directory_drop(struct best_directory *b, const struct best_checkpoint *c);
/* It is the best, and the ledger says so. ERR_IO, ERR_CORRUPT: its files are gone or have changed, or there is no room;
 * the one before is still there, whole, unless it had the same name. */
int best_directory_promote(struct best_directory *b, const struct best_checkpoint *c, struct error *e);

#endif
