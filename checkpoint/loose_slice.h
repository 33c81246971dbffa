/* loose_slice.h - slices that stand in the index of a checkpoint and belong to no variable's list. */
#ifndef CHECKPOINT_LOOSE_SLICE_H
#define CHECKPOINT_LOOSE_SLICE_H

#include "base/error.h"
#include "checkpoint/tensor_bundle.h"

typedef void loose_slice(void *context, const struct tensor_entry *slice);

/* Hands each of them to `visit`, in order of their keys. ERR_NOMEM. */
int loose_slices(const struct tensor_bundle *b, loose_slice *visit, void *context, struct error *e);

#endif
