/*
 * bundle_check.h - is an open checkpoint intact to the last byte? Reads all that has bytes of its own and checks its
 * CRC; finds tensors that lie over each other, slices that no variable lists, and types that no checkpoint can hold.
 * Thread-safe: nothing is shared.
 */
#ifndef CHECKPOINT_BUNDLE_CHECK_H
#define CHECKPOINT_BUNDLE_CHECK_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stdint.h>

struct bundle_check {
    tensor_bundle_problem *problem; /* called with each finding */
    int (*wanted)(void *context, const char *tensor); /* 0: do not read this one; NULL: read all */
    void *context;                  /* of both */
    uint64_t tensors, bytes;        /* becomes what was looked at, and the bytes of what is whole */
};

/* b comes from tensor_bundle_open_damaged(), which has told missing and short shards already; or from
 * tensor_bundle_open. Not OK: memory ran out. */
int bundle_check(struct bundle_check *c, struct tensor_bundle *b, struct error *e);

/* Hands slices that stand in the index and in no variable's list to `visit`, in order of their keys. ERR_NOMEM. */
typedef void bundle_loose_slice(void *context, const struct tensor_entry *slice);
int bundle_loose_slices(const struct tensor_bundle *b, bundle_loose_slice *visit, void *context, struct error *e);

#endif
