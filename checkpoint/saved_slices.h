/*
 * saved_slices.h - reads V1 checkpoints, which TensorFlow wrote before 0.12 and still writes on request: a table, or
 * one for each shard, with the values of tensors in it. They become what a V2 checkpoint has: entries (bundle_entry.h)
 * and the bytes that these refer to. Pure.
 *
 *   ""          SavedTensorSlices.meta: name, shape, type of each tensor, and the slices in which it was saved
 *   slice key   SavedTensorSlices.data: the values of one slice, in a field for their type
 *
 * Source: TensorFlow's tensorflow/core/util/saved_tensor_slice.proto and saved_tensor_slice_util.
 */
#ifndef CHECKPOINT_SAVED_SLICES_H
#define CHECKPOINT_SAVED_SLICES_H

#include "base/buffer.h"
#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>
#include <stdint.h>

/* ---- slice key --------------------------------------------------------------------------------------------------- */

/*
 * The key of one slice of a partitioned variable in the index. Pure.
 *
 *   00, the name with 00 -> 00 ff and ff -> ff 00, 00 01, rank, then start and length of each dimension
 *
 * The rank is a byte count followed by big-endian bytes. start and length are signed, in an encoding that sorts as the
 * numbers do: n bytes hold -2^(7n-1) .. 2^(7n-1) - 1, as few bytes as possible are used, and the top n bits of the
 * big-endian two's complement are flipped.
 */

/* Appends the key of the slice that begins at start[d] and is length[d] long (-1: the whole dimension). */
void slice_key_append(struct buffer *out, const char *name, size_t name_length, int rank, const int64_t *start,
                      const int64_t *length);

/* Appends one signed number of a key. */
void slice_key_append_number(struct buffer *out, int64_t v);

/* ---- saved slices ------------------------------------------------------------------------------------------------ */

struct saved_tensor; /* what meta says of one */

/* All zero at first. */
struct saved_slices {
    struct saved_tensor *tensors; /* of all tables so far, in order of their names */
    size_t tensor_count, tensor_room;
    struct tensor_entry **entries; /* each by malloc(); their offsets are those of `data`, in shard 0 of 1 */
    size_t entry_count, entry_room;
    struct buffer data;
};

/* Adds the n bytes of a table. file: for errors. ERR_CORRUPT: it is damaged, or contradicts itself or a table before.
 * `data` is never more than eight times as long as the tables together. */
int saved_slices_read(struct saved_slices *s, const char *file, const void *bytes, size_t n, struct error *e);

/* Call it after the last table: adds an entry for each tensor that is in several slices, and checks that all values
 * that were announced are there. */
int saved_slices_finish(struct saved_slices *s, const char *file, struct error *e);

void saved_slices_release(struct saved_slices *s); /* also the entries that were not taken (set to NULL) */

#endif
