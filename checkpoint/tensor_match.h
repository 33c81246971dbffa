/*
 * tensor_match.h - checks whether a checkpoint of any format fits a model: compares its tensors with those that the
 * model wants, which are all of floating-point types, and says what is wrong with each. Pure.
 */
#ifndef CHECKPOINT_TENSOR_MATCH_H
#define CHECKPOINT_TENSOR_MATCH_H

#include "base/buffer.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>
#include <stdint.h>

enum tensor_flaw {
    TENSOR_FITS,
    TENSOR_MISSING,
    TENSOR_WRONG_SHAPE, /* whatever its type */
    TENSOR_WRONG_TYPE,  /* tensor_type_is_float() says no */
};

/* all borrowed */
struct tensor_match {
    const char *name; /* the model's name for it; the entry may have another, such as that of an
                                       * average */
    int rank;
    const int64_t *shape;             /* (rank) as wanted */
    const struct tensor_entry *entry; /* what the checkpoint has for it; NULL: nothing */
    enum tensor_flaw flaw;            /* set by tensor_match() */
    int torch; /* 1: the entry has PyTorch's order of dimensions: (out, in, height, width), (out, in) */
    int64_t
        pixels; /* of a matrix whose inputs are an image: those of it, which the model has as (pixels, channels), and
                     * PyTorch, which flattens (channels, height, width), as (channels, pixels); 0: they are none */
};

/* Sets `torch` of n items, all from one checkpoint, to whether its kernels have PyTorch's order: more of them fit then
 * than as they are, or as many and `usual`. Returns it. */
int tensor_match_torch(struct tensor_match *items, size_t n, int usual);

/* Brings the values of an item that fits into the model's order. from may be `to` unless it is `torch` and has 2 or 4
 * dimensions. */
void tensor_match_values(const struct tensor_match *m, const float *from, float *to);

/* Sets the flaw of each of n items; returns how many do not fit. */
size_t tensor_match(struct tensor_match *items, size_t n);

/* Appends a message for each item that does not fit, with `separator` between them:
 *   NAME is missing
 *   NAME has shape [1,64], wanted [64]
 *   NAME has type int32
 * Only the first eight dimensions of a shape are shown. */
void tensor_match_complain(const struct tensor_match *items, size_t n, const char *separator, struct buffer *out);

#endif
