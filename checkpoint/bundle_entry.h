/*
 * bundle_entry.h - decodes and encodes the values of a checkpoint's index: the header and the entry of a tensor
 * (BundleHeaderProto and BundleEntryProto). Pure. Thread-safe: nothing is shared.
 */
#ifndef CHECKPOINT_BUNDLE_ENTRY_H
#define CHECKPOINT_BUNDLE_ENTRY_H

#include "base/buffer.h"
#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>
#include <stdint.h>

enum { BUNDLE_VERSION = 1 }; /* of the format: written as producer and as the lowest version of a reader */

/* Reads the header; only the number of shards is needed. `file` names the index in errors. ERR_CORRUPT: not a header,
 * big-endian, or of a version that excludes this reader; e says which. */
int bundle_header_decode(const char *file, const void *bytes, size_t n, int32_t *shards, struct error *e);
/* The VersionDef of a header. ERR_CORRUPT: it excludes this reader. */
int bundle_version_check(const char *file, int32_t producer, int32_t min_consumer, const int32_t *bad_consumers,
                         size_t bad_consumer_count, struct error *e);
void bundle_header_encode(struct buffer *out, int32_t shards);

/* Reads and checks the entry of tensor `name`: shape, shard < shards, offset and size, and that the size matches type
 * and shape. *out is one allocation with everything that its members point to; free(*out). The slices of a partitioned
 * variable are checked to lie within its shape; bundle_slices_check() checks that they cover it. */
int bundle_entry_decode(const char *file, const void *name, size_t name_length, const void *bytes, size_t n,
                        int32_t shards, struct tensor_entry **out, struct error *e);

/* Appends the entry's bytes as TensorFlow encodes them. A length of -1 in a slice is written as absent. */
int bundle_entry_encode(struct buffer *out, const struct tensor_entry *entry, struct error *e);

/* Checks that the slices of a partitioned variable are disjoint and cover all of it; ERR_CORRUPT says which do not. */
int bundle_slices_check(const char *file, const struct tensor_entry *entry, struct error *e);

/* The tensor's name for errors; the key of a slice is a NUL followed by the variable's name. */
static inline const char *bundle_entry_label(const struct tensor_entry *entry)
{
    return entry->name + (entry->name_length && !*entry->name);
}

/* The length of a slice in dimension d of the full tensor: its own, or that of the dimension. */
static inline int64_t bundle_slice_length(const struct tensor_entry *full, size_t slice, int d)
{
    int64_t length = full->slice[slice].length[d];

    return length < 0 ? full->shape[d] : length;
}

/* Product of a shape; ERR_ARG: a dimension is negative or the product is over INT64_MAX. */
int bundle_shape_elements(int rank, const int64_t *shape, uint64_t *elements);

#endif
