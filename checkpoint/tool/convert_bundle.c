#include "checkpoint/tool/convert_formats.h"

#include "checkpoint/tensor_bundle.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int take_piece(void *context, const void *bytes, size_t n, struct error *e)
{
    return tensor_bundle_writer_append(context, bytes, n, e);
}

static int add(struct conversion *c, struct tensor_bundle_writer *w, const struct source_tensor *tensor,
               struct error *e)
{
    struct tensor_string *strings;
    int rc;

    if (strlen(tensor->name) != tensor->name_length)
        return error_set(e, ERR_ARG, "%s: cannot store a name with a zero byte (%s...) in a TensorFlow checkpoint",
                         c->source.path, tensor->name);
    if (tensor->type == TENSOR_STRING) {
        if ((rc = source_strings(&c->source, tensor, &strings, e)) != OK)
            return rc;
        rc = tensor_bundle_writer_add_strings(w, tensor->name, tensor->rank, tensor->shape, strings,
                                              (size_t)tensor->elements, e);
        free(strings);
        return rc;
    }
    rc = tensor_bundle_writer_begin(w, tensor->name, tensor->type, tensor->rank, tensor->shape, e);
    return rc == OK ? source_pieces(&c->source, tensor, take_piece, w, e) : rc;
}

int convert_bundle(struct conversion *c, struct error *e)
{
    struct tensor_bundle_writer *w;
    char index[PATH_MAX];
    int rc;

    if (snprintf(index, sizeof index, "%s.index", c->to) >= (int)sizeof index)
        return error_set(e, ERR_ARG, "%s: path too long", c->to);
    if ((rc = conversion_check_free(c, index, e)) != OK || (rc = tensor_bundle_writer_open(&w, NULL, c->to, e)) != OK)
        return rc;
    for (size_t i = 0; i < c->source.count && rc == OK; i++) {
        const struct source_tensor *tensor = &c->source.tensors[i];

        if (!conversion_takes(c, tensor))
            continue;
        if (tensor->type == TENSOR_E8M0 || (tensor->type != TENSOR_STRING && !tensor_type_size(tensor->type))) {
            conversion_leave_out(c, tensor, "what is written of a bundle");
            continue;
        }
        if ((rc = add(c, w, tensor, e)) == OK) {
            c->written++;
            c->bytes += tensor->bytes;
        }
    }
    if (rc == OK)
        return tensor_bundle_writer_finish(w, e);
    tensor_bundle_writer_abandon(w);
    return rc;
}
