#include "checkpoint/tensor_match.h"

#include <string.h>

/* Which of the entry's dimensions is dimension d of the model's. */
static int dimension_of(const struct tensor_match *m, int d)
{
    static const int kernel[4] = { 2, 3, 1, 0 }; /* height, width, in, out */

    return !m->torch ? d : m->rank == 4 ? kernel[d] : m->rank == 2 ? 1 - d : d;
}

static enum tensor_flaw flaw_of(const struct tensor_match *m)
{
    if (!m->entry)
        return TENSOR_MISSING;
    if (m->entry->rank != m->rank)
        return TENSOR_WRONG_SHAPE;
    for (int d = 0; d < m->rank; d++)
        if (m->entry->shape[dimension_of(m, d)] != m->shape[d])
            return TENSOR_WRONG_SHAPE;
    return tensor_type_is_float(m->entry->type) ? TENSOR_FITS : TENSOR_WRONG_TYPE;
}

int tensor_match_torch(struct tensor_match *items, size_t n, int usual)
{
    size_t fit[2] = { 0, 0 };

    for (int torch = 0; torch < 2; torch++)
        for (size_t i = 0; i < n; i++) {
            items[i].torch = torch;
            fit[torch] += flaw_of(&items[i]) == TENSOR_FITS;
        }
    const int is = fit[1] > fit[0] || (fit[1] == fit[0] && usual);
    for (size_t i = 0; i < n; i++)
        items[i].torch = is;
    return is;
}

void tensor_match_values(const struct tensor_match *m, const float *from, float *to)
{
    const int64_t *s = m->shape;

    if (m->torch && m->rank == 4) {
        for (int64_t h = 0; h < s[0]; h++)
            for (int64_t w = 0; w < s[1]; w++)
                for (int64_t i = 0; i < s[2]; i++)
                    for (int64_t o = 0; o < s[3]; o++)
                        *to++ = from[((o * s[2] + i) * s[0] + h) * s[1] + w];
    } else if (m->torch && m->rank == 2) {
        const int64_t pixels = m->pixels > 0 ? m->pixels : 1, channels = s[0] / pixels;

        for (int64_t p = 0; p < pixels; p++)
            for (int64_t c = 0; c < channels; c++)
                for (int64_t o = 0; o < s[1]; o++)
                    *to++ = from[(o * channels + c) * pixels + p];
    } else if (from != to) {
        memcpy(to, from, (size_t)m->entry->elements * sizeof *to);
    }
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
            if (m->torch && m->entry->rank == m->rank && m->rank <= 4) {
                int64_t shape[4];

                for (int d = 0; d < m->rank; d++)
                    shape[dimension_of(m, d)] = m->shape[d];
                buffer_append_text(out, ", wanted ");
                append_shape(out, m->rank, shape);
                continue;
            }
            buffer_append_text(out, ", wanted ");
            append_shape(out, m->rank, m->shape);
        }
    }
}
