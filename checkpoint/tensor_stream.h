/*
 * tensor_stream.h - a tensor of a bundle from its first byte to its last, through a buffer of the caller's: big tensors
 * need not be held. Partitioned variables come put together. One stream is for one thread at a time.
 */
#ifndef CHECKPOINT_TENSOR_STREAM_H
#define CHECKPOINT_TENSOR_STREAM_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>

struct tensor_stream;

/* b and entry are borrowed until close. Held whole are only strings, variants, and partitioned variables whose slices
 * are not runs of the tensor's bytes (cut behind the first dimension); ERR_NOMEM without room for them. */
int tensor_stream_open(struct tensor_stream **out, struct tensor_bundle *b, const struct tensor_entry *entry,
                       struct error *e);

/* The next bytes, as tensor_bundle_read gives them: n, or what is left of the tensor; *got is how many, 0 at the end.
 * The CRC is known with the last byte of a tensor or slice: what came before counts only if all reads were OK. */
int tensor_stream_read(struct tensor_stream *s, void *out, size_t n, size_t *got, struct error *e);

void tensor_stream_close(struct tensor_stream *s); /* NULL is fine */

#endif
