/*
 * opened_checkpoint.h - a checkpoint that was found whole, of any format: its identity, its files where they are held
 * open, and its variables where the format is known. One thread at a time.
 */
#ifndef EVALUATOR_FILES_OPENED_CHECKPOINT_H
#define EVALUATOR_FILES_OPENED_CHECKPOINT_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/files/content_digest.h"

#include <stddef.h>
#include <stdint.h>

enum checkpoint_kind {
    CHECKPOINT_BUNDLE,      /* TensorFlow V2: PREFIX.index and its data files */
    CHECKPOINT_SAFETENSORS, /* one file */
    CHECKPOINT_V1,          /* TensorFlow's format before 0.12: recognised, and refused by name */
    CHECKPOINT_OTHER,       /* any file or directory; for commands */
};

struct opened_checkpoint;

/* path: of a BUNDLE its prefix. ERR_IO, ERR_CORRUPT: not there or not whole, perhaps not yet. ERR_ARG: it never will
 * be: a V1 checkpoint. On OK *out is yours until opened_checkpoint_close(). */
int opened_checkpoint_open(struct opened_checkpoint **out, enum checkpoint_kind kind, const char *path,
                           struct error *e);
void opened_checkpoint_close(struct opened_checkpoint *c); /* NULL is fine */

/* Same name and digest: the same checkpoint. */
uint64_t opened_checkpoint_digest(const struct opened_checkpoint *c);
/* 1: it is of a format whose variables can be read. */
int opened_checkpoint_readable(const struct opened_checkpoint *c);
/* Of an OTHER: content_only_grew() from what it was then. */
int opened_checkpoint_only_grew(const struct opened_checkpoint *c, const struct content *now);

/* Of one that cannot be opened, so that it can be known again: 1 and a digest that no whole checkpoint has. */
int opened_checkpoint_raw_digest(enum checkpoint_kind kind, const char *path, uint64_t *digest);

/* The variable of that name; NULL: there is none, or the format is not known. In a safetensors file "a.b.c" is found as
 * "a/b/c", too, if there is no "a/b/c" in it. Borrowed until close. */
const struct tensor_entry *opened_checkpoint_find(const struct opened_checkpoint *c, const char *name);

struct opened_checkpoint_floats {
    const struct tensor_entry *entry;
    float *out;   /* no two overlap */
    size_t count; /* its elements */
};
/* As tensor_bundle_read_float() for each of n; float32 of a bundle by up to so many threads, with the caller's. */
int opened_checkpoint_read_floats(struct opened_checkpoint *c, const struct opened_checkpoint_floats *wanted, size_t n,
                                  int threads, struct error *e);

/* The global step that is in it: the tensor global_step; of a checkpoint of Keras the iterations of its optimizer,
 * since its name counts saves; of safetensors also global_step or step of the metadata. -1: none. doubt: a sentence if
 * global_step cannot be read or is not `named`, the step of the name (-1: none), else left alone. */
int64_t opened_checkpoint_step(struct opened_checkpoint *c, int64_t named, struct error *doubt);

#endif
