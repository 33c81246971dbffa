/*
 * best_directory.h - EVAL/best/: the best checkpoint or the N best, and a file `checkpoint` that names them, so that
 * all readers of TensorFlow checkpoints find them, the best as the newest. A checkpoint named in `checkpoint` is always
 * complete: the file is renamed into place once all files of the checkpoint are there, and files that are no longer
 * among the best are deleted only afterwards.
 *
 *   .tmp-DIGEST-FILE   a file of a checkpoint that is being evaluated: a hard link made before the evaluation, so that
 *                      the trainer may delete the original meanwhile
 *   FILE               once its evaluation is in the ledger and among the best: the link, renamed; or a copy if links
 *                      cannot be made (another file system)
 *   .evaluator         the list of files the evaluator made here (best_manifest.h), written before they are made
 *
 * No other file is deleted or overwritten: opening refuses a directory that holds any; later ones are left alone. The
 * ledger says which checkpoints are best; best_directory_recover() finishes or removes what a killed process left. An
 * original that is changed in place, not replaced, changes here, too. A hard link changes the ctime of the original's
 * inode; a watcher that compares ctimes looks again and finds the same content. One thread.
 */
#ifndef EVALUATOR_KEEP_BEST_DIRECTORY_H
#define EVALUATOR_KEEP_BEST_DIRECTORY_H

#include "base/error.h"
#include "evaluator/files/checkpoint_identity.h"

#include <stddef.h>

struct best_checkpoint {
    const char *directory; /* holds NAME.index and NAME.data-* of a bundle; or the file or directory NAME */
    struct checkpoint_identity checkpoint; /* the step is ignored */
    const char *kept;                      /* its name here, unique among the wanted; NULL: unchanged */
    int volatile_name;                     /* 1: its file is overwritten in place, so copy it, do not link it */
};

struct best_directory;

/* Makes the directory; `directory` is copied. On OK *out is yours until best_directory_close(). ERR_ARG, ERR_CORRUPT:
 * it holds something that is not the evaluator's, which e names. */
int best_directory_open(struct best_directory **out, const char *directory, struct error *e);
void best_directory_close(struct best_directory *b); /* NULL is fine */

/* Call first after opening. wanted: what the ledger says, best first; count 0: none. OK: the directory holds the best
 * one and as many of the others as could be had, or there is no best yet. Not OK: the best one is no longer to be had;
 * what was whole there still is. */
int best_directory_recover(struct best_directory *b, const struct best_checkpoint *wanted, size_t count,
                           struct error *e);

/* Before an evaluation: makes the links. Failures show in promote. May be repeated. */
void best_directory_reserve(struct best_directory *b, const struct best_checkpoint *c);
/* Call when it is not among the best. */
void best_directory_drop(struct best_directory *b, const struct best_checkpoint *c);
/* wanted: what the ledger says, best first; wanted[new] has just joined; others that are not here already are left out.
 * ERR_IO, ERR_CORRUPT: its files are gone or have changed, or there is no room; the earlier ones are still there,
 * whole, except one of the same name. */
int best_directory_promote(struct best_directory *b, const struct best_checkpoint *wanted, size_t count, size_t new,
                           struct error *e);

#endif
