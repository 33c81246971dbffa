/* conversion.h - the state of a conversion, for `checkpoint convert` and each format it writes. */
#ifndef CHECKPOINT_TOOL_CONVERSION_H
#define CHECKPOINT_TOOL_CONVERSION_H

#include "base/program/selection.h"
#include "checkpoint/tool/output.h"
#include "checkpoint/tool/source.h"

struct conversion {
    struct output out; /* for the report; the tensors go to `to` */
    struct selection tensors;
    struct source source;
    const char *to; /* prefix, file or directory */
    int force;
    uint64_t written, bytes; /* tensors, and their bytes */
    uint64_t left_out;       /* tensors that could not be written, each reported */
    uint64_t shortened;      /* tensors of strings that lost trailing bytes in this format, each reported */
};

/* Reports that the format cannot hold a tensor: "NumPy cannot store int2". */
void conversion_leave_out(struct conversion *c, const struct source_tensor *tensor, const char *format);
/* 1: --tensor selects it and its values can be read. Values that cannot (variants, strings in slices) are reported. */
int conversion_takes(struct conversion *c, const struct source_tensor *tensor);

/* ERR_ARG: the path exists and --force was not given. */
int conversion_check_free(const struct conversion *c, const char *path, struct error *e);

#endif
