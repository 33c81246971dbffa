/*
 * tensor_batch.h - several tensors of a bundle at once, with several threads: copying out of the page cache keeps one
 * core busy long before the memory is. Large tensors are cut into pieces, so that one alone is shared as well.
 */
#ifndef CHECKPOINT_TENSOR_BATCH_H
#define CHECKPOINT_TENSOR_BATCH_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stddef.h>

struct tensor_batch_item {
    const struct tensor_entry *entry;
    void *out;    /* gets what tensor_bundle_read() gives, of exactly `bytes` bytes; no two overlap */
    size_t bytes;
};

/* As tensor_bundle_read() for each, every CRC checked. The caller and threads - 1 others work (1, or where no more can
 * be started: the caller alone), until all is read or something fails; the error is that of the first item, in their
 * order, that is known to have failed. What the items point to is undefined then. */
int tensor_batch_read(struct tensor_bundle *b, const struct tensor_batch_item *items, size_t count, int threads,
                      struct error *e);

#endif
