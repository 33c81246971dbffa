/*
 * tensor_stream.h - reads a tensor of a bundle from its first byte to its last into the caller's buffer, so large
 * tensors need not be in memory. Slices of partitioned variables are joined. One stream is for one thread at a time.
 */
#ifndef CHECKPOINT_TENSOR_STREAM_H
#define CHECKPOINT_TENSOR_STREAM_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>

struct tensor_stream;

/* b and entry are borrowed until close. Only strings, variants, and partitioned variables whose slices are not runs of
 * the tensor's bytes (split in a dimension after the first) are read as a whole; ERR_NOMEM if they do not fit in
 * memory. */
int tensor_stream_open(struct tensor_stream **out, struct tensor_bundle *b, const struct tensor_entry *entry,
                       struct error *e);

/* Reads the next bytes, as tensor_bundle_read() returns them: n, or the rest of the tensor; *got is how many, 0 at the
 * end. The CRC is checked at the last byte of a tensor or slice, so the bytes are valid only if all reads were OK. */
int tensor_stream_read(struct tensor_stream *s, void *out, size_t n, size_t *got, struct error *e);

void tensor_stream_close(struct tensor_stream *s); /* NULL is fine */

#endif
