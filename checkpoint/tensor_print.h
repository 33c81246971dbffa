/*
 * tensor_print.h - formats the values of a tensor as NumPy prints arrays: nested brackets, one row of the last
 * dimension per line, and for large tensors only the first and last three elements of each dimension. Elements are
 * added one after the other, so the tensor need not be in memory. Pure.
 */
#ifndef CHECKPOINT_TENSOR_PRINT_H
#define CHECKPOINT_TENSOR_PRINT_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_PRINT_EDGE = 3 };

struct tensor_print {
    int rank, cut;
    const int64_t *shape;  /* borrowed */
    uint64_t elements, at; /* in all; added so far */
    struct buffer cells;   /* texts of the elements shown, NUL-terminated */
    size_t shown, width;   /* how many; the widest */
    int left;              /* texts are aligned to the left */
};

/* A tensor of more than limit elements is abbreviated. Whatever its shape, at most TENSOR_PRINT_CELLS are shown. */
enum { TENSOR_PRINT_CELLS = 100000 };
void tensor_print_init(struct tensor_print *p, int rank, const int64_t *shape, uint64_t elements, uint64_t limit);
void tensor_print_release(struct tensor_print *p);

/* Adds the next `count` elements, of a numeric type. */
void tensor_print_add(struct tensor_print *p, int type, const void *bytes, size_t count);
/* Adds the next element, a string: in quotes, cut after 200 bytes. */
void tensor_print_add_string(struct tensor_print *p, const char *text, size_t n);

/* Appends the text, in lines of at most `columns` if the values fit, ending with a newline; call it when all elements
 * have been added. If memory runs out, buffer_ok(out) is 0. */
void tensor_print_append(const struct tensor_print *p, size_t columns, struct buffer *out);

#endif
