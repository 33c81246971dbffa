#include "eventlog/format/summary_metadata.h"

#include "base/bytes.h"
#include "eventlog/format/wire.h"

#include <string.h>

static const struct span nothing = { (const uint8_t *)"", 0 };

static struct span span_of(const struct wire_field *f)
{
    return (struct span){ f->bytes, f->length };
}

void summary_metadata_read(struct summary_metadata *m, const uint8_t *bytes, size_t n)
{
    const uint8_t *p = bytes, *end = p + n;
    struct wire_field f, inner;

    m->plugin = m->content = m->display_name = m->description = nothing;
    m->data_class = 0;
    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;

        if (f.number == 4 && f.type == WIRE_VARINT)
            m->data_class = (int)(int32_t)f.integer;
        if (f.type != WIRE_BYTES)
            continue;
        if (f.number == 2)
            m->display_name = span_of(&f);
        else if (f.number == 3)
            m->description = span_of(&f);
        while (f.number == 1 && wire_take(&q, stop, &inner) == 1) {
            if (inner.type == WIRE_BYTES && inner.number == 1)
                m->plugin = span_of(&inner);
            else if (inner.type == WIRE_BYTES && inner.number == 2)
                m->content = span_of(&inner);
        }
    }
}

/* A google.protobuf.Value: the last of its members counts. */
static void read_value(struct hparam *h, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1) {
        if (f.number == 2 && f.type == WIRE_FIXED64) {
            h->type = HPARAM_NUMBER;
            h->number = bits_double(f.integer);
        } else if (f.number == 3 && f.type == WIRE_BYTES) {
            h->type = HPARAM_TEXT;
            h->text = span_of(&f);
        } else if (f.number == 4 && f.type == WIRE_VARINT) {
            h->type = HPARAM_BOOL;
            h->number = f.integer != 0;
        } else if (f.number == 1 || f.number == 5 || f.number == 6) {
            h->type = HPARAM_OTHER;
        }
    }
}

/* An entry of map<string, Value>. */
static void read_entry(struct hparam *h, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    *h = (struct hparam){ nothing, HPARAM_OTHER, 0, nothing };
    while (wire_take(&p, end, &f) == 1) {
        if (f.type != WIRE_BYTES)
            continue;
        if (f.number == 1)
            h->name = span_of(&f);
        else if (f.number == 2)
            read_value(h, f.bytes, f.bytes + f.length);
    }
}

int summary_metadata_hparams(const struct summary_metadata *m, int (*each)(void *context, const struct hparam *h),
                             void *context)
{
    const uint8_t *p = m->content.bytes, *end = p + m->content.length;
    struct wire_field f, inner;
    struct hparam h;
    int rc;

    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;

        if (f.number != 3 || f.type != WIRE_BYTES) /* session_start_info */
            continue;
        while (wire_take(&q, stop, &inner) == 1) {
            if (inner.number != 1 || inner.type != WIRE_BYTES) /* hparams */
                continue;
            read_entry(&h, inner.bytes, inner.bytes + inner.length);
            if ((rc = each(context, &h)) != 0)
                return rc;
        }
    }
    return 0;
}
