/*
 * tensor_print.h - the values of a tensor as text, laid out as NumPy prints arrays: nested brackets, one row of the
 * last dimension a line, and of large tensors only the first and last three in each dimension. Elements are handed in
 * one after the other, so the tensor need not be held. Pure.
 */
#ifndef CHECKPOINT_TENSOR_PRINT_H
#define CHECKPOINT_TENSOR_PRINT_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_PRINT_EDGE = 3 };

struct tensor_print {
    int rank, cut;
    const int64_t *shape;    /* borrowed */
    uint64_t elements, at;   /* in all; handed in so far */
    struct buffer cells;     /* texts of those that are shown, each with a NUL */
    size_t shown, width;     /* how many; the widest */
    int left;                /* texts are aligned to the left */
};

/* A tensor of more than limit elements is cut. Whatever its shape, no more than TENSOR_PRINT_CELLS are shown. */
enum { TENSOR_PRINT_CELLS = 100000 };
void tensor_print_init(struct tensor_print *p, int rank, const int64_t *shape, uint64_t elements, uint64_t limit);
void tensor_print_release(struct tensor_print *p);

/* The next `count` elements, of a type that has numbers. */
void tensor_print_add(struct tensor_print *p, int type, const void *bytes, size_t count);
/* The next element, a string: in quotes, cut after 200 bytes. */
void tensor_print_add_string(struct tensor_print *p, const char *text, size_t n);

/* Appends the text, in lines of at most `columns` where the values allow it, the last one with a newline; to be called
 * when all elements were handed in. Without memory out is in its failed state. */
void tensor_print_append(const struct tensor_print *p, size_t columns, struct buffer *out);

#endif
