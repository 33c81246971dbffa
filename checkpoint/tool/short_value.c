#include "checkpoint/tool/short_value.h"

#include "base/bytes.h"
#include "checkpoint/tensor_value.h"
#include "checkpoint/tool/command.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 1000 }; /* bytes of a text */

static int append_text(struct buffer *out, const char *text, size_t n)
{
    if (n > TEXT_MOST || !utf8_valid(text, n, NULL))
        return 0;
    buffer_append(out, text, n);
    return 1;
}

/* 1: appended; 0: it is not a text. */
static int string(const struct source *s, const struct source_tensor *tensor, struct buffer *out, struct error *e)
{
    struct tensor_string *strings;
    int rc = source_strings(s, tensor, &strings, e);

    if (rc == OK)
        rc = append_text(out, strings[0].bytes, strings[0].length);
    free(strings);
    return rc;
}

int short_value_is_text(const struct source_tensor *tensor)
{
    static const char ours[] = "evalboard/";

    return tensor->type == TENSOR_UINT8 && tensor->rank == 1 && tensor->bytes <= TEXT_MOST &&
           strncmp(tensor->name, ours, sizeof ours - 1) == 0;
}

static int number_or_text(const struct source *s, const struct source_tensor *tensor, struct buffer *out,
                          struct error *e)
{
    char *bytes, text[TENSOR_VALUE_TEXT];
    int rc = source_read(s, tensor, &bytes, e);

    if (rc != OK)
        return rc;
    if (short_value_is_text(tensor)) {
        rc = append_text(out, bytes, (size_t)tensor->bytes);
    } else {
        tensor_value_text(tensor->type, bytes, text);
        buffer_append_text(out, text);
        rc = 1;
    }
    free(bytes);
    return rc;
}

int short_value(const struct source *s, const struct source_tensor *tensor, struct buffer *out, struct error *e)
{
    int rc = 0;

    if (tensor->type == TENSOR_STRING && !tensor->slices && tensor->elements == 1)
        rc = string(s, tensor, out, e);
    else if (short_value_is_text(tensor) || (tensor->elements == 1 && tensor_kind(tensor->type)))
        rc = number_or_text(s, tensor, out, e);
    if (rc < 0)
        return rc;
    if (!rc) {
        buffer_format(out, "%s ", tensor->type_name);
        command_shape(out, tensor->rank, tensor->shape);
    }
    return OK;
}
