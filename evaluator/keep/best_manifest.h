/*
 * best_manifest.h - lists of file names, and the text of EVAL/best/.evaluator, which lists the files in EVAL/best/ that
 * are the evaluator's own; it is written before they are made:
 *
 *   # files that evaluator --keep-best made here and may delete
 *   checkpoint
 *   model.ckpt-700.data-00000-of-00001
 *   model.ckpt-700.index
 *
 * One file name per line. Pure.
 */
#ifndef EVALUATOR_KEEP_BEST_MANIFEST_H
#define EVALUATOR_KEEP_BEST_MANIFEST_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

#define BEST_MANIFEST_FILE ".evaluator"

/* all zero: none */
struct best_names {
    char **items;
    size_t count;
};

void best_names_release(struct best_names *n);
int best_names_add(struct best_names *n, const char *name, struct error *e); /* copied; ERR_NOMEM */
size_t best_names_find(const struct best_names *n, const char *name);        /* count: not found */
void best_names_remove(struct best_names *n, size_t i);

/* On OK *out is yours until best_names_release(). ERR_CORRUPT: not such a text, or truncated. */
int best_manifest_parse(const char *text, size_t n, struct best_names *out, struct error *e);
void best_manifest_format(const struct best_names *n, struct buffer *out);
/* 1: the name fits on a line and has no directory part. */
int best_manifest_can_hold(const char *name);

#endif
