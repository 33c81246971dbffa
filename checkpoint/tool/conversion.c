#include "checkpoint/tool/conversion.h"

#include <sys/stat.h>

void conversion_leave_out(struct conversion *c, const struct source_tensor *tensor, const char *format)
{
    struct error e = { 0 };

    error_set(&e, ERR_ARG, "%s: tensor %s is left out: %s cannot store %s", c->source.path, tensor->name, format,
              tensor->type_name);
    output_fail(&c->out, &e);
    c->left_out++;
}

int conversion_takes(struct conversion *c, const struct source_tensor *tensor)
{
    struct error e = { 0 };

    if (!selection_wants(&c->tensors, tensor->name))
        return 0;
    if (tensor->type != TENSOR_VARIANT && (tensor->type != TENSOR_STRING || !tensor->slices))
        return 1;
    error_set(&e, ERR_ARG, "%s: tensor %s is left out: %s are not supported", c->source.path, tensor->name,
              tensor->slices ? "strings in slices" : "variants");
    output_fail(&c->out, &e);
    c->left_out++;
    return 0;
}

int conversion_check_free(const struct conversion *c, const char *path, struct error *e)
{
    struct stat st;

    if (c->force || lstat(path, &st) < 0)
        return OK;
    return error_set(e, ERR_ARG, "%s: already exists; use -f to overwrite it", path);
}
