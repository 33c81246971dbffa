/*
 * checkpoint_identity.h - identifies a checkpoint. The watcher makes the identity, and queue, pin, evaluation,
 * work.json, EVAL/best/ and the ledger use it. A checkpoint is its name together with its digest: moving the directory
 * changes neither, overwriting the checkpoint changes the digest. A plain value, copied by assignment; where there may
 * be a million (a listing, the ledger), sightings.h, queue.h and outcomes.h keep only the members they need.
 */
#ifndef EVALUATOR_FILES_CHECKPOINT_IDENTITY_H
#define EVALUATOR_FILES_CHECKPOINT_IDENTITY_H

#include <stdint.h>

enum { CHECKPOINT_NAME_MAX = 256 }; /* bytes of a file name with its NUL */

struct checkpoint_identity {
    char name[CHECKPOINT_NAME_MAX]; /* its base name; of a bundle, of the prefix: "model.ckpt-700" */
    int64_t step;                   /* -1: none; or not opened yet, and not in the name (--step-from) */
    int has_digest;                 /* 0: it could not be read */
    uint64_t digest;                /* of its index or contents (opened_checkpoint.h); 0: none */
    uint64_t digest_after;          /* including files its evaluation added to a directory; 0: none added */
};

/* The identity of a checkpoint that was not read yet. A longer name is cut. */
struct checkpoint_identity checkpoint_identity_of(const char *name, int64_t step);
/* 1: same checkpoint and same step. */
int checkpoint_identity_same(const struct checkpoint_identity *a, const struct checkpoint_identity *b);

#endif
