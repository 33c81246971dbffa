/*
 * bundle_entry.h - the values of a checkpoint's index: the header and one tensor's entry, from and to bytes
 * (BundleHeaderProto and BundleEntryProto). Pure. Thread-safe: nothing is shared.
 */
#ifndef CHECKPOINT_BUNDLE_ENTRY_H
#define CHECKPOINT_BUNDLE_ENTRY_H

#include "base/buffer.h"
#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>
#include <stdint.h>

enum { BUNDLE_VERSION = 1 }; /* of the format: written as producer, and what a reader must be at least */

/* Reads the header; only the number of shards is of use. `file` is what sentences call the index. ERR_CORRUPT: not a
 * header, big-endian, or of a version that shuts us out; each has its own sentence. */
int bundle_header_decode(const char *file, const void *bytes, size_t n, int32_t *shards, struct error *e);
void bundle_header_encode(struct buffer *out, int32_t shards);

/* Reads and checks the entry of tensor `name`: shape, shard < shards, offset and size, and that the size is what type
 * and shape make. *out is one allocation with all that its members point to; free(*out). A partitioned variable's
 * slices are held within its shape; whether they cover it is bundle_slices_check's to say. */
int bundle_entry_decode(const char *file, const void *name, size_t name_length, const void *bytes, size_t n,
                        int32_t shards, struct tensor_entry **out, struct error *e);

/* Appends the entry's bytes as TensorFlow encodes them. A length of -1 in a slice is written as absent. */
int bundle_entry_encode(struct buffer *out, const struct tensor_entry *entry, struct error *e);

/* Are the slices of a partitioned variable disjoint, and do they cover all of it? ERR_CORRUPT says which not. */
int bundle_slices_check(const char *file, const struct tensor_entry *entry, struct error *e);

/* What sentences call the tensor: its name; a slice's key begins with a NUL and then the variable's name. */
static inline const char *bundle_entry_label(const struct tensor_entry *entry)
{
    return entry->name + (entry->name_length && !*entry->name);
}

/* The length of a slice in dimension d of the full tensor: its own, or the dimension's. */
static inline int64_t bundle_slice_length(const struct tensor_entry *full, size_t slice, int d)
{
    int64_t length = full->slice[slice].length[d];

    return length < 0 ? full->shape[d] : length;
}

/* Product of a shape; ERR_ARG when a dimension is negative or the product is over INT64_MAX. */
int bundle_shape_elements(int rank, const int64_t *shape, uint64_t *elements);

#endif
