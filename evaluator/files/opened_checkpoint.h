/*
 * opened_checkpoint.h - a whole checkpoint of any format: its identity, its files held open, and, if the format is
 * known, its variables. One thread at a time.
 */
#ifndef EVALUATOR_FILES_OPENED_CHECKPOINT_H
#define EVALUATOR_FILES_OPENED_CHECKPOINT_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/files/content_digest.h"

#include <stddef.h>
#include <stdint.h>

/* ---- checkpoint identity ----------------------------------------------------------------------------------------- */

/*
 * Identifies a checkpoint. The watcher makes the identity, and queue, pin, evaluation,
 * work.json, EVAL/best/ and the ledger use it. A checkpoint is its name together with its digest: moving the directory
 * changes neither, overwriting the checkpoint changes the digest. A plain value, copied by assignment; where there may
 * be a million (a listing, the ledger), sightings.h, queue.h and ledger.h keep only the members they need.
 */

enum { CHECKPOINT_NAME_MAX = 256 }; /* bytes of a file name with its NUL */

struct checkpoint_identity {
    char name[CHECKPOINT_NAME_MAX]; /* its base name; of a bundle, of the prefix: "model.ckpt-700" */
    int64_t step;                   /* -1: none; or not opened yet, and not in the name (--step-from) */
    int has_digest;                 /* 0: it could not be read */
    uint64_t digest;                /* of its index or contents; 0: none */
    uint64_t digest_after;          /* including files its evaluation added to a directory; 0: none added */
};

/* The identity of a checkpoint that was not read yet. A longer name is cut. */
struct checkpoint_identity checkpoint_identity_of(const char *name, int64_t step);
/* 1: same checkpoint and same step. */
int checkpoint_identity_same(const struct checkpoint_identity *a, const struct checkpoint_identity *b);

/* ---- opened checkpoint ------------------------------------------------------------------------------------------- */

enum checkpoint_kind {
    CHECKPOINT_BUNDLE,      /* TensorFlow V2: PREFIX.index and its data files */
    CHECKPOINT_SAFETENSORS, /* one file */
    CHECKPOINT_V1,          /* TensorFlow's format before 0.12: one file, or the first of its shards */
    CHECKPOINT_OTHER,       /* any file or directory; for commands, but see opened_checkpoint_enter() */
};

struct opened_checkpoint;

/* path: for a BUNDLE, the prefix. ERR_IO, ERR_CORRUPT: missing or not whole, perhaps only not yet. ERR_ARG: never
 * usable. On OK *out is yours until opened_checkpoint_close(). */
int opened_checkpoint_open(struct opened_checkpoint **out, enum checkpoint_kind kind, const char *path,
                           struct error *e);
void opened_checkpoint_close(struct opened_checkpoint *c); /* NULL is fine */
/* Opens the variables of a directory at path (now, perhaps a pinned copy) with weights as checkpoint_weights_within()
 * finds them, one file or parts; of other checkpoints nothing changes. Until then a directory holds no file open, so
 * that any number may wait. */
int opened_checkpoint_enter(struct opened_checkpoint *c, const char *path, struct error *e);

/* Same name and digest: the same checkpoint. */
uint64_t opened_checkpoint_digest(const struct opened_checkpoint *c);
/* 1: the variables of its format can be read. */
int opened_checkpoint_readable(const struct opened_checkpoint *c);
/* The content of an OTHER as it was opened; of others it is empty. Borrowed. */
const struct content *opened_checkpoint_content(const struct opened_checkpoint *c);

/* A digest to recognise a checkpoint that cannot be opened; no whole checkpoint has it. 1 and *digest, or 0. */
int opened_checkpoint_raw_digest(enum checkpoint_kind kind, const char *path, uint64_t *digest);

/* The variable of that name; NULL: there is none, or the format is unknown. In a safetensors file "a.b.c" is also found
 * as "a/b/c", unless the file has an "a/b/c". Borrowed until close. */
const struct tensor_entry *opened_checkpoint_find(const struct opened_checkpoint *c, const char *name);

/* 1: its format says that PyTorch wrote it, whose kernels have their outputs first (tensor_match_torch()). */
int opened_checkpoint_from_torch(const struct opened_checkpoint *c);

/* An integer of a bundle, under that name. 1 and *value; 0: there is none. */
int opened_checkpoint_integer(struct opened_checkpoint *c, const char *name, int64_t *value);

struct opened_checkpoint_floats {
    const struct tensor_entry *entry;
    float *out;   /* no two overlap */
    size_t count; /* its elements */
};
/* As tensor_bundle_read_float() for each of n; float32 tensors of a bundle are read by up to `threads` threads, the
 * caller's included. */
int opened_checkpoint_read_floats(struct opened_checkpoint *c, const struct opened_checkpoint_floats *wanted, size_t n,
                                  int threads, struct error *e);

/* The global step stored in the checkpoint: the tensor global_step; in Keras checkpoints, whose names count saves, the
 * optimizer's iterations; in safetensors also global_step or step of the metadata. -1: none. named: the step in the
 * name, -1: none. doubt: a sentence if global_step cannot be read or differs from `named`, otherwise unchanged. */
int64_t opened_checkpoint_step(struct opened_checkpoint *c, int64_t named, struct error *doubt);

#endif
