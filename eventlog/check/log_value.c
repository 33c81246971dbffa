#include "eventlog/check/log_value.h"

#include "base/bytes.h"
#include "eventlog/format/wire.h"

#include <string.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void read_shape(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f, inner;

    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;
        uint64_t size = 0;

        if (f.number != 2 || f.type != WIRE_BYTES)
            continue;
        while (wire_take(&q, stop, &inner) == 1)
            if (inner.number == 1)
                size = inner.integer;
        v->rank += v->rank < 1000;
        v->last_dimension = size;
        if (__builtin_mul_overflow(v->elements, size, &v->elements))
            v->elements = UINT64_MAX;
    }
}

static uint64_t packed_count(const struct wire_field *f, size_t size)
{
    uint64_t count = 0;

    if (f->type != WIRE_BYTES)
        return 1;
    if (size)
        return f->length / size;
    for (size_t i = 0; i < f->length; i++)
        count += f->bytes[i] < 0x80; /* the last byte of a varint */
    return count;
}

static void read_tensor(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1) {
        if (f.number == 1)
            v->dtype = (int)(int32_t)f.integer;
        else if (f.number == 2)
            read_shape(v, f.bytes, f.bytes + f.length);
        else if (f.number == 4)
            v->content_bytes = f.length;
        else if (f.number == 5 || f.number == 9)
            v->listed[f.number] += packed_count(&f, 4);
        else if (f.number == 6 || f.number == 12)
            v->listed[f.number] += packed_count(&f, 8);
        else if (f.number == 8)
            v->listed[8]++;
        else if (f.number < 18)
            v->listed[f.number] += packed_count(&f, 0);
        if ((f.number == 4 || f.number == 5) && f.type == WIRE_BYTES && f.length == 4)
            v->number = f.bytes;
    }
}

static void read_histogram(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1) {
        size_t count = f.type == WIRE_BYTES ? f.length / 8 : 1;

        if (f.number == 6)
            v->limits += count;
        if (f.number != 7 || !count)
            continue;
        if (!v->buckets)
            v->first_bucket = bits_double(f.type == WIRE_BYTES ? get_le64(f.bytes) : f.integer);
        v->last_bucket = bits_double(f.type == WIRE_BYTES ? get_le64(f.bytes + 8 * (count - 1)) : f.integer);
        v->buckets += count;
    }
}

static void read_metadata(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f, inner;

    v->has_metadata = 1;
    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;

        if (f.number == 4)
            v->data_class = (int)(int32_t)f.integer;
        if (f.number == 2) {
            v->display_name = (const char *)f.bytes;
            v->display_name_length = f.length;
        } else if (f.number == 3) {
            v->description = (const char *)f.bytes;
            v->description_length = f.length;
        }
        if (f.number != 1)
            continue;
        while (wire_take(&q, stop, &inner) == 1) {
            if (inner.number == 1) {
                v->plugin = (const char *)inner.bytes;
                v->plugin_length = inner.length;
            } else if (inner.number == 2) {
                v->content = inner.bytes;
                v->content_length = inner.length;
            }
        }
    }
}

static void read_image(struct log_value *v, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1)
        if (f.number == 4) {
            v->image = f.bytes;
            v->image_length = f.length;
        }
}

void log_value_read(struct log_value *v, const uint8_t *bytes, size_t n)
{
    const uint8_t *p = bytes, *end = bytes + n;
    struct wire_field f;

    memset(v, 0, sizeof *v);
    v->tag = v->plugin = v->display_name = v->description = "";
    v->content = v->image = v->bytes = bytes;
    v->length = n;
    v->elements = v->last_dimension = 1;
    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *stop = f.bytes + f.length;

        if ((f.number >= EVENT_VALUE_SIMPLE && f.number <= EVENT_VALUE_AUDIO) || f.number == EVENT_VALUE_TENSOR)
            v->kind = (enum event_kind)f.number;
        switch (f.number) {
        case 1:
            v->tag = (const char *)f.bytes;
            v->tag_length = f.length;
            break;
        case 2: v->number = p - 4; break;
        case 4: read_image(v, f.bytes, stop); break;
        case 5: read_histogram(v, f.bytes, stop); break;
        case 8: read_tensor(v, f.bytes, stop); break;
        case 9: read_metadata(v, f.bytes, stop); break;
        default: break;
        }
    }
}

int log_value_plugin_is(const struct log_value *v, const char *name)
{
    return v->plugin_length == strlen(name) && !memcmp(v->plugin, name, v->plugin_length);
}

/* ---- classes --------------------------------------------------------------------------------------------------- */

static int plugin_class(const struct log_value *v)
{
    static const struct {
        const char *name;
        int class;
    } known[] = {
        { "scalars", LOG_CLASS_SCALAR },
        { "histograms", LOG_CLASS_TENSOR },
        { "text", LOG_CLASS_TENSOR },
        { "hparams", LOG_CLASS_TENSOR },
        { "pr_curves", LOG_CLASS_TENSOR },
        { "mesh", LOG_CLASS_TENSOR },
        { "custom_scalars", LOG_CLASS_TENSOR },
        { "images", LOG_CLASS_BLOBS },
        { "audio", LOG_CLASS_BLOBS },
        { "graph_run_metadata", LOG_CLASS_BLOBS },
        { "graph_run_metadata_graph", LOG_CLASS_BLOBS },
        { "graph_keras_model", LOG_CLASS_BLOBS },
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (log_value_plugin_is(v, known[i].name))
            return known[i].class;
    return LOG_CLASS_NONE;
}

/* The class that a value of an old kind has by itself. */
static int legacy_class(enum event_kind kind)
{
    switch (kind) {
    case EVENT_VALUE_SIMPLE: return LOG_CLASS_SCALAR;
    case EVENT_VALUE_HISTOGRAM: return LOG_CLASS_TENSOR;
    case EVENT_VALUE_IMAGE:
    case EVENT_VALUE_AUDIO: return LOG_CLASS_BLOBS;
    default: return LOG_CLASS_NONE;
    }
}

int log_value_class(const struct log_value *first)
{
    if (first->data_class)
        return first->data_class > 0 && first->data_class <= LOG_CLASS_BLOBS ? first->data_class : LOG_CLASS_NONE;
    if (legacy_class(first->kind))
        return legacy_class(first->kind);
    return plugin_class(first);
}

int log_value_loses_texts(const struct log_value *first)
{
    return !first->data_class && legacy_class(first->kind) && (first->display_name_length || first->description_length);
}

static int image_known(const uint8_t *p, size_t n)
{
    return (n >= 4 && !memcmp(p, "\x89PNG", 4)) || (n >= 3 && !memcmp(p, "\xff\xd8\xff", 3)) ||
           (n >= 4 && !memcmp(p, "GIF8", 4)) || (n >= 2 && !memcmp(p, "BM", 2));
}

enum log_finding_kind log_value_series_fault(const struct log_value *v, int class)
{
    static const char layout[] = "custom_scalars__config__";
    struct wire_field f;
    uint64_t version = 0;
    int shape = 0, body = 0;
    const uint8_t *p = v->content, *end = p + v->content_length;

    if (v->data_class < 0 || v->data_class > LOG_CLASS_BLOBS)
        return LOG_DATA_CLASS;
    if (!class)
        return LOG_NO_CLASS;
    if (v->data_class && legacy_class(v->kind) && legacy_class(v->kind) != class)
        return LOG_LEGACY_CLASS;
    if (class == LOG_CLASS_BLOBS && (memchr(v->tag, '"', v->tag_length) || memchr(v->tag, '\\', v->tag_length) ||
                                     memchr(v->tag, '\n', v->tag_length)))
        return LOG_BLOB_TAG;
    if (log_value_plugin_is(v, "custom_scalars") &&
        (v->tag_length != sizeof layout - 1 || memcmp(v->tag, layout, sizeof layout - 1) != 0))
        return LOG_LAYOUT_TAG;
    while (wire_take(&p, end, &f) == 1) {
        version = f.number == 1 && f.type == WIRE_VARINT ? f.integer : version;
        shape |= f.number == 6;
        body |= f.number >= 2 && f.number <= 4 && f.type == WIRE_BYTES;
    }
    if (log_value_plugin_is(v, "hparams") && (p < end || version || !body))
        return LOG_HPARAMS;
    if (log_value_plugin_is(v, "mesh") && (p < end || !shape))
        return LOG_MESH_SHAPE;
    return LOG_KINDS;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Bytes of an element in tensor_content, and the field that lists such elements; 0: no array has this type. */
static size_t element_size(int dtype, int *list)
{
    /* clang-format off */
    static const struct { int dtype, list; size_t size; } known[] = {
        { EVENT_FLOAT, 5, 4 },   { EVENT_DOUBLE, 6, 8 },  { EVENT_INT32, 7, 4 },     { EVENT_UINT8, 7, 1 },
        { EVENT_INT16, 7, 2 },   { EVENT_INT8, 7, 1 },    { EVENT_INT64, 10, 8 },    { EVENT_BOOL, 11, 1 },
        { EVENT_UINT16, 7, 2 },  { EVENT_HALF, 13, 2 },   { EVENT_UINT32, 0, 4 },    { EVENT_UINT64, 0, 8 },
        { EVENT_COMPLEX64, 9, 8 }, { EVENT_COMPLEX128, 12, 16 },
        { 11, 7, 1 }, { 12, 7, 1 }, { 13, 7, 4 }, { 15, 7, 2 }, { 16, 7, 2 }, /* quantized ones */
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].dtype == dtype) {
            *list = known[i].list;
            return known[i].size;
        }
    return 0;
}

static uint64_t elements_given(const struct log_value *v, int *typed)
{
    int list = 0;
    size_t size = element_size(v->dtype, &list);
    uint64_t count;

    *typed = size != 0;
    if (v->dtype == EVENT_STRING) {
        *typed = 1;
        return v->listed[8];
    }
    if (!size)
        return 0;
    if (v->content_bytes)
        return v->content_bytes % size ? UINT64_MAX : v->content_bytes / size;
    count = v->listed[list];
    return v->dtype == EVENT_COMPLEX64 || v->dtype == EVENT_COMPLEX128 ? count / 2 : count;
}

static enum log_finding_kind scalar_fault(const struct log_value *v)
{
    int typed;
    uint64_t count;

    if (v->kind == EVENT_VALUE_SIMPLE)
        return LOG_KINDS;
    if (v->kind == EVENT_VALUE_NONE)
        return LOG_NO_VALUE;
    if (v->kind != EVENT_VALUE_TENSOR)
        return LOG_SCALAR_CHANGED;
    if (v->dtype == EVENT_FLOAT && !v->rank && (v->listed[5] == 1 || (!v->listed[5] && v->content_bytes == 4)))
        return LOG_KINDS;
    count = elements_given(v, &typed);
    if (!typed || v->dtype == EVENT_STRING || v->dtype == EVENT_COMPLEX64 || v->dtype == EVENT_COMPLEX128 ||
        count != 1 || v->elements != 1)
        return LOG_SCALAR_VALUE;
    return LOG_SCALAR_FORM;
}

static enum log_finding_kind tensor_fault(const struct log_value *v)
{
    int typed;
    uint64_t count;

    if (v->kind == EVENT_VALUE_NONE)
        return log_value_plugin_is(v, "hparams") && !v->data_class ? LOG_KINDS : LOG_NO_VALUE;
    if (v->kind == EVENT_VALUE_HISTOGRAM) {
        if (v->limits != v->buckets)
            return LOG_HISTOGRAM_LENGTHS;
        return v->buckets > 1 && (!(v->first_bucket > 0) || !(v->last_bucket > 0)) ? LOG_HISTOGRAM_EDGES : LOG_KINDS;
    }
    if (v->kind != EVENT_VALUE_TENSOR)
        return LOG_KIND_CHANGED;
    count = elements_given(v, &typed);
    if (!typed || (count != v->elements && (count != 1 || v->content_bytes)))
        return LOG_TENSOR_COUNT;
    return LOG_KINDS;
}

static enum log_finding_kind blobs_fault(const struct log_value *v, const struct log_value *first)
{
    int audio = log_value_plugin_is(first, "audio"), images = log_value_plugin_is(first, "images");

    switch (v->kind) {
    case EVENT_VALUE_NONE: return LOG_NO_VALUE;
    case EVENT_VALUE_IMAGE: return image_known(v->image, v->image_length) ? LOG_KINDS : LOG_IMAGE_TYPE;
    case EVENT_VALUE_AUDIO: return LOG_KINDS;
    case EVENT_VALUE_TENSOR: break;
    default: return LOG_KIND_CHANGED;
    }
    if (v->dtype != EVENT_STRING)
        return LOG_BLOB_FORM;
    if (v->rank == 1)
        return images && v->listed[8] < 3 ? LOG_NO_PICTURE : LOG_KINDS; /* width and height come first */
    if ((v->rank == 2 && v->last_dimension == 2 && audio) ||
        (v->rank == 0 && v->listed[8] == 1 && !audio && !images && plugin_class(first) == LOG_CLASS_BLOBS))
        return first->data_class ? LOG_BLOB_SHAPE : LOG_KINDS;
    return LOG_BLOB_FORM;
}

enum log_finding_kind log_value_fault(const struct log_value *v, const struct log_value *first, int class)
{
    if (class == LOG_CLASS_SCALAR)
        return scalar_fault(v);
    if (class == LOG_CLASS_TENSOR) {
        struct log_value with = *v;

        with.plugin = first->plugin; /* later values need not name it again */
        with.plugin_length = first->plugin_length;
        with.data_class = first->data_class;
        return tensor_fault(&with);
    }
    return class == LOG_CLASS_BLOBS ? blobs_fault(v, first) : LOG_KINDS;
}
