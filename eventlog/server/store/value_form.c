#include "eventlog/server/store/value_form.h"

#include "base/bytes.h"
#include "eventlog/format/value_content.h"
#include "eventlog/format/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* fields of an Event, of its TaggedRunMetadata, of a TensorProto and of its shape */
enum { EVENT_GRAPH_FIELD = 4, EVENT_RUN_METADATA_FIELD = 8, RUN_METADATA_TAG = 1, RUN_METADATA_BYTES = 2 };
enum {
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    TENSOR_STRINGS = 8,
    TENSOR_RESOURCES = 14,
    TENSOR_VARIANTS = 15,
    SHAPE_DIM = 2,
    DIM_SIZE = 1,
    DIM_NAME = 2
};

/* A float tensor of shape [0], for values without one, as TensorBoard's loaders have it. */
static const uint8_t null_tensor[] = { 0x08, 0x01, 0x12, 0x02, 0x12, 0x00 };

/* For each dtype of which TensorBoard makes arrays: bytes of an element, its typed list, and there the bytes of a
 * number (0: a varint) and the numbers of an element. */
static const struct {
    uint8_t item, list, size, numbers;
} dtypes[] = {
    [EVENT_FLOAT] = { 4, 5, 4, 1 },     [EVENT_DOUBLE] = { 8, 6, 8, 1 },       [EVENT_INT32] = { 4, 7, 0, 1 },
    [EVENT_UINT8] = { 1, 7, 0, 1 },     [EVENT_INT16] = { 2, 7, 0, 1 },        [EVENT_INT8] = { 1, 7, 0, 1 },
    [EVENT_COMPLEX64] = { 8, 9, 4, 2 }, [EVENT_INT64] = { 8, 10, 0, 1 },       [EVENT_BOOL] = { 1, 11, 0, 1 },
    [EVENT_UINT16] = { 2, 7, 0, 1 },    [EVENT_COMPLEX128] = { 16, 12, 8, 2 }, [EVENT_HALF] = { 2, 13, 0, 1 },
    [EVENT_UINT32] = { 4, 0, 0, 1 },    [EVENT_UINT64] = { 8, 0, 0, 1 },
};

/* ---- blobs ----------------------------------------------------------------------------------------------------- */

/* The last field of that number with bytes. */
static int last_bytes(const uint8_t *p, size_t n, uint64_t number, struct span *out)
{
    const uint8_t *end = p + n;
    struct wire_field f;
    int found = 0;

    while (wire_take(&p, end, &f) == 1)
        if (f.number == number && f.type == WIRE_BYTES) {
            *out = (struct span){ f.bytes, f.length };
            found = 1;
        }
    return found;
}

static int of_event(const struct event *event, struct span *blob)
{
    if (event->what == EVENT_GRAPH)
        return last_bytes(event->data, event->length, EVENT_GRAPH_FIELD, blob);
    if (!last_bytes(event->data, event->length, EVENT_RUN_METADATA_FIELD, blob))
        return 0;
    if (!last_bytes(blob->bytes, blob->length, RUN_METADATA_BYTES, blob))
        blob->length = 0;
    return 1;
}

int value_form_run_metadata_tag(const struct event *event, struct span *tag)
{
    if (!last_bytes(event->data, event->length, EVENT_RUN_METADATA_FIELD, tag))
        return 0;
    if (!last_bytes(tag->bytes, tag->length, RUN_METADATA_TAG, tag))
        tag->length = 0;
    return 1;
}

static int is_plugin(const struct series_info *s, const char *name)
{
    return s->plugin_length == strlen(name) && !memcmp(s->plugin, name, s->plugin_length);
}

/* How the strings of a tensor are blobs: each of them, each second one (clips beside their labels), or not at all. */
static size_t stride_of(const struct series_info *s, const struct tensor_content *t)
{
    if (t->dtype != EVENT_STRING)
        return 0;
    if (t->rank == 1)
        return 1;
    if (t->rank == 2 && t->shape[1] == 2 && is_plugin(s, "audio"))
        return 2;
    return !t->rank && (is_plugin(s, "graph_run_metadata") || is_plugin(s, "graph_run_metadata_graph") ||
                        is_plugin(s, "graph_keras_model"));
}

static int tensor_blobs(const struct event_value *v, const struct series_info *s, uint64_t *blobs)
{
    struct tensor_content t;
    struct span text;
    uint64_t strings = 0;
    size_t at = 0, stride;

    if (!tensor_content_read(&t, v->bytes, v->length) || !(stride = stride_of(s, &t)))
        return 0;
    while (tensor_content_string(&t, &at, &text))
        strings++;
    *blobs = (strings + stride - 1) / stride;
    return t.rank || strings == 1;
}

static int tensor_blob(const struct event_value *v, const struct series_info *s, uint64_t index, struct span *blob)
{
    struct tensor_content t;
    uint64_t i = 0;
    size_t at = 0, stride;

    if (!tensor_content_read(&t, v->bytes, v->length) || !(stride = stride_of(s, &t)))
        return 0;
    for (; tensor_content_string(&t, &at, blob); i++)
        if (i % stride == 0 && i / stride == index)
            return 1;
    return 0;
}

int value_form_blob(const struct value_form *v, const struct series_info *s, uint64_t index,
                    char digits[VALUE_FORM_DIGITS], struct span *blob)
{
    int64_t size[2];

    if (!v->value)
        return index == 0 && of_event(v->event, blob);
    switch (v->value->kind) {
    case EVENT_VALUE_TENSOR: return tensor_blob(v->value, s, index, blob);
    case EVENT_VALUE_AUDIO:
        if (!audio_content_read(v->value->bytes, v->value->length, blob))
            blob->length = 0;
        return index == 0;
    case EVENT_VALUE_IMAGE:
        if (index == 2 && !image_content_read(v->value->bytes, v->value->length, blob))
            blob->length = 0;
        if (index >= 2)
            return index == 2;
        image_content_size(v->value->bytes, v->value->length, &size[0], &size[1]);
        *blob = (struct span){ (const uint8_t *)digits,
                               (size_t)snprintf(digits, VALUE_FORM_DIGITS, "%" PRId64, size[index]) };
        return 1;
    default: return 0;
    }
}

int value_form_fits(const struct value_form *v, const struct series_info *s, uint64_t *blobs)
{
    enum event_kind kind = v->value ? v->value->kind : EVENT_VALUE_NONE;

    *blobs = 1;
    switch (s->class) {
    case SERIES_SCALARS: return v->value && v->value->is_number;
    case SERIES_TENSORS:
        return v->value && (kind == EVENT_VALUE_TENSOR || kind == EVENT_VALUE_HISTOGRAM || kind == EVENT_VALUE_NONE);
    case SERIES_BLOBS:
        if (!v->value || kind == EVENT_VALUE_AUDIO)
            return 1;
        *blobs = 3;
        return kind == EVENT_VALUE_IMAGE || (kind == EVENT_VALUE_TENSOR && tensor_blobs(v->value, s, blobs));
    default: return 0;
    }
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

static uint64_t numbers_in(const struct wire_field *f, size_t size)
{
    uint64_t n = 0;

    if (f->type != WIRE_BYTES)
        return 1;
    if (size)
        return f->length / size;
    for (size_t i = 0; i < f->length; i++)
        n += f->bytes[i] < 0x80;
    return n;
}

/* The names of dimensions must be UTF-8, like every string of an answer. */
static int names_right(const struct wire_field *shape)
{
    const uint8_t *p = shape->bytes, *end = p + shape->length;
    struct wire_field dim, inner;

    while (wire_take(&p, end, &dim) == 1)
        for (const uint8_t *q = dim.bytes, *stop = q + dim.length; dim.number == SHAPE_DIM && q < stop;) {
            if (wire_take(&q, stop, &inner) != 1)
                return 0;
            if (inner.number == DIM_NAME && inner.type == WIRE_BYTES && !utf8_valid(inner.bytes, inner.length, NULL))
                return 0;
        }
    return 1;
}

/* Whether TensorBoard makes an array of the tensor: its bytes or its numbers must be as many as its shape says, but a
 * single number stands for all. */
static int tensor_right(const struct tensor_content *t)
{
    const uint8_t *p = t->message.bytes, *end = p + t->message.length;
    const size_t known = sizeof dtypes / sizeof *dtypes;
    size_t type = t->dtype > 0 && (size_t)t->dtype < known && dtypes[t->dtype].item ? (size_t)t->dtype : 0;
    uint64_t list = t->dtype == EVENT_STRING ? TENSOR_STRINGS : dtypes[type].list, count = 0, content = 0;
    struct wire_field f;

    if ((!type && t->dtype != EVENT_STRING) || t->elements == UINT64_MAX)
        return 0;
    while (p < end) {
        if (wire_take(&p, end, &f) != 1 || f.number == TENSOR_RESOURCES || f.number == TENSOR_VARIANTS)
            return 0;
        if (f.number == TENSOR_SHAPE && f.type == WIRE_BYTES && !names_right(&f))
            return 0;
        if (f.number == TENSOR_CONTENT && f.type == WIRE_BYTES)
            content = f.length;
        if (f.number == list && list)
            count += t->dtype == EVENT_STRING ? 1 : numbers_in(&f, dtypes[type].size);
    }
    if (t->dtype == EVENT_STRING)
        return count == 1 || count == t->elements;
    if (content)
        return t->elements <= UINT64_MAX / 16 && content == t->elements * dtypes[type].item;
    return count == dtypes[type].numbers || count == t->elements * dtypes[type].numbers;
}

static int histogram_tensor(const struct event_value *v, struct buffer *out)
{
    struct wire w = WIRE_EMPTY;
    struct buffer rows = BUFFER_EMPTY;
    size_t count, shape, dim;
    int right = histogram_content_rows(v->bytes, v->length, &rows, &count);

    if (right) {
        wire_integer(&w, TENSOR_DTYPE, EVENT_DOUBLE);
        shape = wire_begin(&w, TENSOR_SHAPE);
        for (int i = 0; i < 2; i++) {
            dim = wire_begin(&w, SHAPE_DIM);
            wire_integer(&w, DIM_SIZE, i ? 3 : (int64_t)count);
            wire_end(&w, dim);
        }
        wire_end(&w, shape);
        for (size_t i = 0; i < 3 * count; i++) {
            double number;

            memcpy(&number, rows.data + i * sizeof number, sizeof number);
            put_le64(rows.data + i * sizeof number, double_bits(number));
        }
        if (count)
            wire_bytes(&w, TENSOR_CONTENT, rows.data, rows.length);
        if (buffer_ok(&w.bytes))
            buffer_append(out, w.bytes.data, w.bytes.length);
        else
            out->failed = 1;
    }
    wire_release(&w);
    buffer_release(&rows);
    return right && buffer_ok(out);
}

int value_form_tensor(const struct value_form *v, struct buffer *out)
{
    struct tensor_content t;

    if (!v->value)
        return 0;
    switch (v->value->kind) {
    case EVENT_VALUE_NONE: buffer_append(out, null_tensor, sizeof null_tensor); return buffer_ok(out);
    case EVENT_VALUE_HISTOGRAM: return histogram_tensor(v->value, out);
    case EVENT_VALUE_TENSOR:
        if (!tensor_content_read(&t, v->value->bytes, v->value->length) || !tensor_right(&t))
            return 0;
        buffer_append(out, t.message.bytes, t.message.length);
        return buffer_ok(out);
    default: return 0;
    }
}
