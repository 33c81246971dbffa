/*
 * checkpoint_identity.h - which checkpoint: made by the watcher, and the same through queue, pin, evaluation, work.json
 * and EVAL/best/ to the ledger. A checkpoint is its name together with its digest: a moved directory changes neither,
 * an overwritten checkpoint changes the digest. A plain value, copied by assignment; where there may be a million (what
 * a directory lists, what the ledger has), sightings.h, queue.h and outcomes.h keep only what they need of it.
 */
#ifndef EVALUATOR_FILES_CHECKPOINT_IDENTITY_H
#define EVALUATOR_FILES_CHECKPOINT_IDENTITY_H

#include <stdint.h>

enum { CHECKPOINT_NAME_MAX = 256 }; /* bytes of a name with its NUL, as those of files */

struct checkpoint_identity {
    char name[CHECKPOINT_NAME_MAX]; /* its base name, of a bundle that of its prefix: "model.ckpt-700" */
    int64_t step;                   /* -1: it has none, or was not opened, and its name does not tell (--step-from) */
    int has_digest;                 /* 0: it could not be read */
    uint64_t digest;                /* of its index or contents (opened_checkpoint.h); 0: has none */
    uint64_t digest_after;          /* of a directory into which its evaluation wrote files: with them; 0: the same */
};

/* Of one that was not read yet. A longer name is cut. */
struct checkpoint_identity checkpoint_identity_of(const char *name, int64_t step);
/* 1: the same checkpoint, of the same step. */
int checkpoint_identity_same(const struct checkpoint_identity *a, const struct checkpoint_identity *b);

#endif
