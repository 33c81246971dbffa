/* convert.h - what `checkpoint convert` does for each format it writes. One file a format: convert_bundle.c,
 * convert_safetensors.c, convert_npy.c. */
#ifndef CHECKPOINT_TOOL_CONVERT_H
#define CHECKPOINT_TOOL_CONVERT_H

#include "base/program/selection.h"
#include "checkpoint/tool/output.h"
#include "checkpoint/tool/source.h"

struct convert {
    struct output out;       /* of what was done; what is written goes to `to` */
    struct selection tensors;
    struct source source;
    const char *to;          /* prefix, file or directory */
    int force;
    uint64_t written, bytes; /* tensors, and their bytes */
    uint64_t left_out;       /* tensors that could not be written; each was told */
    uint64_t shortened;      /* tensors of strings of which the format loses the ends; the same */
};

int convert_wanted(struct convert *c, const struct source_tensor *tensor);

/* Tells that the format cannot hold a tensor: "there is no uint128 in NumPy". */
void convert_leave_out(struct convert *c, const struct source_tensor *tensor, const char *format);
/* 1: its values can be read. 0: they cannot, which was told: variants, and strings in slices. */
int convert_readable(struct convert *c, const struct source_tensor *tensor);

/* ERR_ARG when the path is there and --force was not given. */
int convert_check_free(const struct convert *c, const char *path, struct error *e);

int convert_to_bundle(struct convert *c, struct error *e);
int convert_to_safetensors(struct convert *c, struct error *e);
int convert_to_npy(struct convert *c, struct error *e);

#endif
