/*
 * tensor_batch.h - reads several tensors of a bundle with several threads: copying from the page cache saturates one
 * core long before it saturates memory. Large tensors are read in pieces, so that even a single one is shared.
 */
#ifndef CHECKPOINT_TENSOR_BATCH_H
#define CHECKPOINT_TENSOR_BATCH_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>

struct tensor_batch_item {
    const struct tensor_entry *entry;
    void *out; /* filled as by tensor_bundle_read(), exactly `bytes` bytes; no two overlap */
    size_t bytes;
};

/* As tensor_bundle_read() for each item, checking every CRC. The caller and threads - 1 others work until everything is
 * read or something fails (with threads 1, or if no thread can be started, the caller alone). The error is that of the
 * first item in the list that is known to have failed; the contents of all items are then undefined. */
int tensor_batch_read(struct tensor_bundle *b, const struct tensor_batch_item *items, size_t count, int threads,
                      struct error *e);

#endif
