/*
 * slice_key.h - the key of one slice of a partitioned variable in the index. Pure.
 *
 *   00, the name with 00 -> 00 ff and ff -> ff 00, 00 01, rank, then start and length of each dimension
 *
 * The rank is a byte count followed by big-endian bytes. start and length are signed, in an encoding that sorts as the
 * numbers do: n bytes hold -2^(7n-1) .. 2^(7n-1) - 1, as few bytes as possible are used, and the top n bits of the
 * big-endian two's complement are flipped.
 */
#ifndef CHECKPOINT_SLICE_KEY_H
#define CHECKPOINT_SLICE_KEY_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* Appends the key of the slice that begins at start[d] and is length[d] long (-1: the whole dimension). */
void slice_key_append(struct buffer *out, const char *name, size_t name_length, int rank, const int64_t *start,
                      const int64_t *length);

/* Appends one signed number of a key. */
void slice_key_append_number(struct buffer *out, int64_t v);

#endif
