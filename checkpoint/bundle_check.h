/*
 * bundle_check.h - checks that an open checkpoint is intact to the last byte: reads every entry that has bytes of its
 * own and checks its CRC; finds overlapping tensors, slices that no variable lists, and types that no checkpoint can
 * hold. Thread-safe: nothing is shared.
 */
#ifndef CHECKPOINT_BUNDLE_CHECK_H
#define CHECKPOINT_BUNDLE_CHECK_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

#include <stdint.h>

struct bundle_check {
    tensor_bundle_problem *problem;                   /* called with each finding */
    int (*wanted)(void *context, const char *tensor); /* 0: do not read this one; NULL: read all */
    void *context;                                    /* for both functions */
    uint64_t tensors, bytes;                          /* set to the tensors checked, and the bytes of intact ones */
};

/* b is from tensor_bundle_open_damaged(), which has already reported missing and short shards, or from
 * tensor_bundle_open(). OK or ERR_NOMEM. */
int bundle_check(struct bundle_check *c, struct tensor_bundle *b, struct error *e);

/* Hands slices that stand in the index and in no variable's list to `visit`, in order of their keys. ERR_NOMEM. */
typedef void bundle_loose_slice(void *context, const struct tensor_entry *slice);
int bundle_loose_slices(const struct tensor_bundle *b, bundle_loose_slice *visit, void *context, struct error *e);

#endif
