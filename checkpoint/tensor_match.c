#include "checkpoint/tensor_match.h"

static enum tensor_flaw flaw_of(const struct tensor_match *m)
{
    if (!m->entry)
        return TENSOR_MISSING;
    if (m->entry->rank != m->rank)
        return TENSOR_WRONG_SHAPE;
    for (int d = 0; d < m->rank; d++)
        if (m->entry->shape[d] != m->shape[d])
            return TENSOR_WRONG_SHAPE;
    return tensor_type_is_float(m->entry->type) ? TENSOR_FITS : TENSOR_WRONG_TYPE;
}

size_t tensor_match(struct tensor_match *items, size_t n)
{
    size_t wrong = 0;

    for (size_t i = 0; i < n; i++)
        wrong += (items[i].flaw = flaw_of(&items[i])) != TENSOR_FITS;
    return wrong;
}

static void append_shape(struct buffer *out, int rank, const int64_t *shape)
{
    buffer_append_byte(out, '[');
    for (int d = 0; d < rank && d < 8; d++)
        buffer_format(out, "%s%lld", d ? "," : "", (long long)shape[d]);
    buffer_append_text(out, rank > 8 ? ",...]" : "]");
}

void tensor_match_complain(const struct tensor_match *items, size_t n, const char *separator, struct buffer *out)
{
    const char *before = "";

    for (const struct tensor_match *m = items; m < items + n; m++) {
        if (m->flaw == TENSOR_FITS)
            continue;
        buffer_format(out, "%s%s ", before, m->name);
        before = separator;
        if (m->flaw == TENSOR_MISSING) {
            buffer_append_text(out, "is missing");
        } else if (m->flaw == TENSOR_WRONG_TYPE) {
            buffer_format(out, "has type %s", tensor_type_name(m->entry->type));
        } else {
            buffer_append_text(out, "has shape ");
            append_shape(out, m->entry->rank, m->entry->shape);
            buffer_append_text(out, ", wanted ");
            append_shape(out, m->rank, m->shape);
        }
    }
}
