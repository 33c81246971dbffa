/* Values of a Summary in every form that TensorBoard's loaders and libraries write or take. */
#include "tests/fuzz/made_event_parts.h"

#include "base/bytes.h"

#include <math.h>
#include <string.h>

enum {
    FLOAT = 1,
    DOUBLE,
    INT32,
    UINT8,
    INT16,
    INT8,
    STRING,
    COMPLEX64,
    INT64,
    BOOL,
    BFLOAT16 = 14,
    UINT16 = 17,
    COMPLEX128,
    HALF,
    UINT32 = 22,
    UINT64
};

static const struct dtype {
    uint8_t dtype, size, list; /* list: number of the field that lists such numbers */
} dtypes[] = {
    /* the first 13 can be scalars */
    { FLOAT, 4, 5 },     { DOUBLE, 8, 6 },  { INT32, 4, 7 },   { INT64, 8, 10 },    { UINT8, 1, 7 },
    { INT8, 1, 7 },      { INT16, 2, 7 },   { UINT16, 2, 7 },  { BOOL, 1, 11 },     { HALF, 2, 13 },
    { BFLOAT16, 2, 13 }, { UINT32, 4, 16 }, { UINT64, 8, 17 }, { COMPLEX64, 8, 9 }, { COMPLEX128, 16, 12 },
};

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static uint64_t bits_of(const uint8_t *p, size_t size)
{
    uint64_t v = 0;

    while (size--)
        v = v << 8 | p[size];
    return v;
}

static int64_t sign_extended(uint64_t v, size_t size)
{
    uint64_t sign = (uint64_t)1 << (8 * size - 1);

    return (int64_t)((v ^ sign) - sign);
}

/* By the definition of binary16, not by the product's conversion. */
static double half(unsigned bits)
{
    double fraction = bits & 0x3ff;
    int exponent = bits >> 10 & 0x1f;
    double v = exponent == 31 ? (fraction > 0 ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(fraction + 1024, exponent - 25)
                              : ldexp(fraction, -24);

    return bits & 0x8000 ? -v : v;
}

static double number_of(const struct dtype *t, const uint8_t *p)
{
    uint64_t v = bits_of(p, t->size);

    switch (t->dtype) {
    case FLOAT: return (double)bits_float((uint32_t)v);
    case DOUBLE: return bits_double(v);
    case HALF: return half((unsigned)v);
    case BFLOAT16: return (double)bits_float((uint32_t)v << 16);
    case BOOL: return v != 0;
    case UINT8:
    case UINT16:
    case UINT32:
    case UINT64: return (double)v;
    default: return (double)sign_extended(v, t->size);
    }
}

static uint32_t any_float(struct maker *k)
{
    static const uint32_t odd[] = { 0x3f800000, 0,          0x80000000, 0x7f800000, 0xff800000,
                                    0x7fc00000, 0x7f800001, 1,          0x7f7fffff, 0xffffffff };
    uint8_t bytes[4];

    if (made_rarely(k, 4))
        return odd[decide(k->d, sizeof odd / sizeof *odd)];
    decide_bytes(k->d, bytes, sizeof bytes);
    return get_le32(bytes);
}

static void any_elements(struct maker *k, const struct dtype *t, size_t count, uint8_t *out)
{
    decide_bytes(k->d, out, count * t->size);
    for (size_t i = 0; i < count; i++) {
        if (t->dtype == BOOL)
            out[i] &= 1;
        if (t->dtype == FLOAT)
            put_le32(out + 4 * i, any_float(k));
        if (t->dtype == DOUBLE && made_rarely(k, 4))
            put_le64(out + 8 * i, double_bits((double)bits_float(any_float(k))));
    }
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

struct tensor {
    const struct dtype *type; /* NULL: strings */
    uint64_t shape[4];
    int rank; /* -1: no shape at all */
    uint8_t elements[32 * 16];
    size_t count;          /* of elements, or of strings */
    struct buffer strings; /* each at most 255 bytes, behind a byte with its length */
};

static void put_shape(struct maker *k, const struct tensor *t, struct made_parts *m)
{
    struct made_parts shape = { 0 }, dim = { 0 };

    if (t->rank < 0)
        return;
    for (int i = 0; i < t->rank; i++) {
        made_integer(k, &dim.bytes, 1, t->shape[i]);
        made_part_end(&dim);
        if (made_rarely(k, 8)) {
            struct buffer name = BUFFER_EMPTY;

            buffer_append_text(&name, "höhe");
            made_text(k, &dim.bytes, 2, &name);
            made_part_end(&dim);
            buffer_release(&name);
        }
        made_inside(k, &dim, MADE_DIM, 2, &shape.bytes);
    }
    made_part_end(&shape);
    made_inside(k, &shape, MADE_SHAPE, 2, &m->bytes);
    made_part_end(m);
}

/* How an element stands in the typed list, without a key. */
static void put_element(struct maker *k, const struct dtype *t, const uint8_t *p, struct buffer *out)
{
    uint64_t v = bits_of(p, t->size);

    switch (t->list) {
    case 5:
    case 6:
    case 9:
    case 12: buffer_append(out, p, t->size); break;
    case 10: made_varint(k, out, v, 10); break;
    case 11: made_varint(k, out, v ? (made_rarely(k, 4) ? 256 : 1) : 0, 10); break; /* any number but 0 is true */
    case 7:
        if (t->dtype == INT32 || t->dtype == INT16 || t->dtype == INT8) {
            v = (uint64_t)sign_extended(v, t->size);
            if (made_rarely(k, 4)) /* an int32 is 32 bits, whatever stands above them */
                v &= UINT32_MAX;
        }
        made_varint(k, out, v, 10);
        break;
    default: made_varint(k, out, v, 10); break;
    }
}

/* The elements as a list: packed, unpacked, or a mixture of both. */
static void put_list(struct maker *k, const struct tensor *t, size_t count, struct made_parts *m)
{
    uint64_t packed = decide(k->d, 3); /* 0: in one run */
    struct buffer run = BUFFER_EMPTY;

    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = t->elements + i * t->type->size;
        size_t width = t->type->list == 5 || t->type->list == 9 ? 4 : 8;

        if (!packed || (packed == 2 && decide(k->d, 2))) {
            put_element(k, t->type, p, &run);
            continue;
        }
        if (run.length)
            made_bytes(k, &m->bytes, t->type->list, run.data, run.length);
        buffer_clear(&run);
        if (t->type->list != 5 && t->type->list != 6 && t->type->list != 9 && t->type->list != 12) {
            put_element(k, t->type, p, &run);
            made_varint(k, &m->bytes, (uint64_t)t->type->list << 3, 5);
            buffer_append(&m->bytes, run.data, run.length);
            buffer_clear(&run);
            continue;
        }
        for (size_t at = 0; at < t->type->size; at += width) { /* a complex number is two */
            if (width == 4)
                made_fixed32(k, &m->bytes, t->type->list, get_le32(p + at));
            else
                made_fixed64(k, &m->bytes, t->type->list, get_le64(p + at));
        }
    }
    if (run.length || !packed)
        made_bytes(k, &m->bytes, t->type->list, run.data, run.length);
    buffer_release(&run);
    made_part_end(m);
}

static void put_strings(struct maker *k, const struct tensor *t, struct made_parts *m)
{
    for (size_t at = 0; at < t->strings.length;) {
        size_t n = (uint8_t)t->strings.data[at];

        made_bytes(k, &m->bytes, 8, t->strings.data + at + 1, n);
        at += n + 1;
    }
    made_part_end(m);
}

/* MADE_LIST_CUT, MADE_SKIPPED_LIST_CUT: a packed run of numbers that ends inside one, in one of those fields. */
static void put_cut_list(struct maker *k, struct made_parts *m, const uint8_t *fields, size_t count)
{
    uint8_t field = fields[decide(k->d, count)];

    if (field == 5 || field == 9)
        made_bytes(k, &m->bytes, field, "\0\0\0", 3);
    else if (field == 6 || field == 12)
        made_bytes(k, &m->bytes, field, "\0\0\0\0\0\0\0", 7);
    else
        made_bytes(k, &m->bytes, field, "\1\x80", 2);
    made_part_end(m);
    k->fault = MADE_NO_FAULT;
}

static void keep_row(struct made_events *m, struct made_value *v, double left, double right, double count)
{
    const double row[3] = { left, right, count };
    struct made_span s = made_keep(m, row, sizeof row);

    if (!v->rows.length)
        v->rows.at = s.at;
    v->rows.length += s.length;
}

/* A tensor [k, 3] of floats or doubles may be a histogram's. */
static void keep_rows(struct made_events *m, struct made_value *v, const struct tensor *t)
{
    size_t size = t->type->size;

    v->has_rows = t->rank == 2 && t->shape[1] == 3 && (t->type->dtype == FLOAT || t->type->dtype == DOUBLE);
    for (size_t i = 0; v->has_rows && i < t->count; i += 3)
        keep_row(m, v, number_of(t->type, t->elements + i * size), number_of(t->type, t->elements + (i + 1) * size),
                 number_of(t->type, t->elements + (i + 2) * size));
}

static void put_tensor(struct made_events *m, struct made_value *v, struct maker *k, struct tensor *t,
                       struct made_parts *value)
{
    static const uint8_t lists[] = { 5, 6, 7, 10, 11, 13, 16, 17 }, skipped[] = { 9, 12 };
    struct made_parts tensor = { 0 };
    size_t count = t->count;
    int in_content = t->type && decide(k->d, 2);

    v->stored = EVENTLOG_STORED_TENSOR;
    v->dtype = t->type ? t->type->dtype : STRING;
    if (made_rarely(k, 24)) /* the last counts */
        made_integer(k, &tensor.bytes, 1, DOUBLE);
    v->elements_wrong = k->fault == MADE_ELEMENTS_OTHER;
    if (v->elements_wrong) { /* one element of a list stands for all, one of the content does not */
        t->rank = 1;
        t->shape[0] = count + 1 + decide(k->d, 3);
        k->fault = MADE_NO_FAULT;
        in_content |= t->type && count < 2;
    }
    made_integer(k, &tensor.bytes, 1, (uint64_t)v->dtype | (made_rarely(k, 24) ? (uint64_t)1 << 32 : 0));
    made_part_end(&tensor);
    put_shape(k, t, &tensor);
    if (k->zeros) {
        made_integer(k, &tensor.bytes, 3, 0);
        made_part_end(&tensor);
    }
    if (!t->type) {
        v->strings = count;
        put_strings(k, t, &tensor);
    } else {
        v->elements = made_keep(m, t->elements, count * t->type->size);
        v->is_number = count == 1 && t->type->dtype != COMPLEX64 && t->type->dtype != COMPLEX128 && !v->elements_wrong;
        if (v->is_number)
            v->number = number_of(t->type, t->elements);
        if (in_content) {
            if (made_rarely(k, 24))
                made_bytes(k, &tensor.bytes, 4, "replaced", 8);
            made_bytes(k, &tensor.bytes, 4, t->elements, count * t->type->size);
            made_part_end(&tensor);
        }
        if (!in_content || made_rarely(k, 8)) /* both: the content counts */
            put_list(k, t, count, &tensor);
        keep_rows(m, v, t);
    }
    if (k->fault == MADE_LIST_CUT)
        put_cut_list(k, &tensor, lists, sizeof lists);
    if (k->fault == MADE_SKIPPED_LIST_CUT)
        put_cut_list(k, &tensor, skipped, sizeof skipped);
    made_inside(k, &tensor, MADE_TENSOR, 8, &value->bytes);
    made_part_end(value);
}

/* One number, in a shape of one element. */
static void number(struct maker *k, struct tensor *t)
{
    t->type = &dtypes[decide(k->d, 13)];
    t->rank = (int)decide(k->d, 4) - 1;
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        t->shape[i] = 1;
    any_elements(k, t->type, 1, t->elements);
}

static void array(struct maker *k, struct tensor *t, int is_histogram)
{
    t->type = &dtypes[is_histogram ? 1 - decide(k->d, 2) : decide(k->d, sizeof dtypes / sizeof *dtypes)];
    t->rank = 2;
    t->shape[0] = is_histogram ? 1 + decide(k->d, 4) : decide(k->d, 4); /* none at all, too */
    t->shape[1] = 3;
    t->count = t->shape[0] * 3;
    any_elements(k, t->type, t->count, t->elements);
}

static void strings(struct maker *k, struct tensor *t, enum made_family family)
{
    static const char *const images[] = { "1", "1", "\x89PNG\r\n\x1a\n", "GIF89a", "\xff\xd8\xff\xe0" };
    uint8_t any[200];

    t->count = family == MADE_IMAGES ? 3 + decide(k->d, 3) : decide(k->d, 5);
    if (k->fault == MADE_ELEMENTS_OTHER && t->count == 1)
        t->count = 2; /* one string stands for all */
    t->rank = 1;
    t->shape[0] = t->count;
    if (family == MADE_CLIPS && decide(k->d, 2)) {
        t->rank = 2;
        t->shape[1] = 2;
        t->count *= 2;
    } else if (family == MADE_TEXTS && t->count == 1) {
        t->rank = (int)decide(k->d, 3) - 1;
        t->shape[0] = 1;
    }
    for (size_t i = 0; i < t->count; i++) {
        size_t n = family == MADE_IMAGES ? strlen(images[i]) : decide(k->d, made_rarely(k, 4) ? sizeof any : 8);

        if (family == MADE_IMAGES)
            memcpy(any, images[i], n);
        else
            decide_bytes(k->d, any, n); /* strings of a tensor are bytes: any will do */
        buffer_append_byte(&t->strings, (int)n);
        if (n)
            buffer_append(&t->strings, any, n);
    }
}

/* ---- the older kinds ------------------------------------------------------------------------------------------- */

static void put_simple(struct made_value *v, struct maker *k, struct made_parts *value)
{
    uint32_t bits = any_float(k);

    v->stored = EVENTLOG_STORED_SIMPLE_VALUE;
    v->dtype = FLOAT;
    v->number = (double)bits_float(bits);
    made_fixed32(k, &value->bytes, 2, bits);
    made_part_end(value);
}

/* Without the empty buckets at both ends; the smallest and the largest value are the outermost limits. */
static void keep_old_rows(struct made_events *m, struct made_value *v, const double *counts, size_t n)
{
    size_t first = 0;

    while (first < n && counts[first] <= 0)
        first++;
    while (n > first && counts[n - 1] <= 0)
        n--;
    v->has_rows = 1;
    for (size_t i = first; i < n; i++)
        keep_row(m, v, i == first ? -2 : (double)i - 1, i + 1 == n ? -1 : (double)i, counts[i]);
}

static void put_buckets(struct made_events *made, struct made_value *v, struct maker *k, struct made_parts *value)
{
    size_t limits = decide(k->d, 5), buckets = limits;
    struct made_parts m = { 0 };
    double counts[8];

    if (k->fault == MADE_BUCKETS_OTHER) {
        buckets = limits + 1 + decide(k->d, 3);
        k->fault = MADE_NO_FAULT;
    }
    v->stored = EVENTLOG_STORED_HISTOGRAM;
    for (uint64_t field = 1; field <= 5; field++) {
        made_fixed64(k, &m.bytes, field, double_bits((double)field - 3));
        made_part_end(&m);
    }
    for (uint64_t field = 6; field <= 7; field++) {
        struct buffer run = BUFFER_EMPTY;
        int packed = !made_rarely(k, 3);

        for (size_t i = 0; i < (field == 6 ? limits : buckets); i++) {
            uint8_t bytes[8];

            if (field == 7)
                counts[i] = (double)decide(k->d, 3);
            put_le64(bytes, double_bits(field == 6 ? (double)i : counts[i]));
            if (packed)
                buffer_append(&run, bytes, 8);
            else
                made_fixed64(k, &m.bytes, field, get_le64(bytes));
        }
        if (run.length)
            made_bytes(k, &m.bytes, field, run.data, run.length);
        made_part_end(&m);
        buffer_release(&run);
    }
    keep_old_rows(made, v, counts, limits);
    if (k->fault == MADE_SKIPPED_LIST_CUT) {
        put_cut_list(k, &m, (const uint8_t *)"\6", 1);
        v->has_rows = 0;
    }
    made_inside(k, &m, MADE_HISTOGRAM, 5, &value->bytes);
    made_part_end(value);
}

static void put_picture(struct made_value *v, struct maker *k, struct made_parts *value)
{
    struct made_parts m = { 0 };

    v->stored = EVENTLOG_STORED_IMAGE;
    for (uint64_t field = 1; field <= 3; field++) {
        uint64_t size = 1 + decide(k->d, 300);

        *(field == 1 ? &v->height : &v->width) = (int64_t)(field < 3 ? size : (uint64_t)v->width);
        made_integer(k, &m.bytes, field, size);
        made_part_end(&m);
    }
    v->pictures = 1;
    made_bytes(k, &m.bytes, 4, "\x89PNG\r\n\x1a\n", 8);
    made_part_end(&m);
    made_inside(k, &m, MADE_IMAGE, 4, &value->bytes);
    made_part_end(value);
}

static void put_clip(struct made_value *v, struct maker *k, struct made_parts *value)
{
    struct made_parts m = { 0 };
    struct buffer type = BUFFER_EMPTY;

    v->stored = EVENTLOG_STORED_AUDIO;
    made_fixed32(k, &m.bytes, 1, float_bits(8000));
    made_part_end(&m);
    made_integer(k, &m.bytes, 2, 1);
    made_part_end(&m);
    made_integer(k, &m.bytes, 3, decide(k->d, 1000));
    made_part_end(&m);
    made_bytes(k, &m.bytes, 4, "RIFF", 4);
    made_part_end(&m);
    buffer_append_text(&type, "audio/wav");
    made_text(k, &m.bytes, 5, &type);
    made_part_end(&m);
    buffer_release(&type);
    made_inside(k, &m, MADE_AUDIO, 6, &value->bytes);
    made_part_end(value);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static void put_metadata(struct made_events *m, struct made_value *v, struct maker *k, const char *plugin,
                         struct made_parts *value)
{
    struct made_parts metadata = { 0 }, data = { 0 };
    struct buffer text = BUFFER_EMPTY;

    if (made_rarely(k, 24)) /* the last counts */
        made_bytes(k, &data.bytes, 1, "audio", 5);
    buffer_append_text(&text, plugin);
    made_text(k, &data.bytes, 1, &text);
    made_part_end(&data);
    v->plugin = made_keep(m, text.data, text.length);
    if (made_rarely(k, 4)) {
        made_bytes(k, &data.bytes, 2, "\x10\1", 2);
        made_part_end(&data);
    }
    made_inside(k, &data, MADE_PLUGIN_DATA, 1, &metadata.bytes);
    made_part_end(&metadata);
    for (uint64_t field = 2; field <= 3; field++) {
        if (!made_rarely(k, 4))
            continue;
        buffer_clear(&text);
        buffer_append_text(&text, field == 2 ? "Größe" : "what **it** is");
        made_text(k, &metadata.bytes, field, &text);
        made_part_end(&metadata);
    }
    if (k->zeros) {
        made_integer(k, &metadata.bytes, 4, 0);
        made_part_end(&metadata);
    }
    buffer_release(&text);
    made_inside(k, &metadata, MADE_METADATA, 9, &value->bytes);
    made_part_end(value);
}

/* Another member of the oneof before the one that counts. */
static void put_replaced(struct maker *k, enum made_family family, struct made_parts *value)
{
    static const uint8_t fields[MADE_FAMILIES] = {
        [MADE_SIMPLE] = 2,      [MADE_OLDEST_BUCKETS] = 3, [MADE_OLD_IMAGE] = 4,
        [MADE_OLD_BUCKETS] = 5, [MADE_OLD_AUDIO] = 6,
    };
    static const struct {
        uint8_t field, n;
        const char *bytes;
    } members[] = {
        { 4, 10, "\x08\5\x10\6\x22\4GIF8" },
        { 5, 36, "\x32\x10\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40\x3a\x10\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40" },
        { 6, 8, "\x10\2\x22\4RIFF" },
        { 8, 8, "\x08\1\x22\4\0\0\x80\x3f" },
    };
    size_t i = decide(k->d, 5), own = fields[family] ? fields[family] : 8;

    if (i < 4)
        made_bytes(k, &value->bytes, members[i].field, members[i].bytes, members[i].n);
    if (i == 4 || members[i].field == own) /* two of one kind would merge, but for another between them */
        made_fixed32(k, &value->bytes, 2, any_float(k));
}

static void put_content(struct made_events *m, struct made_value *v, struct maker *k, enum made_family family,
                        struct made_parts *value)
{
    struct tensor t = { .rank = -1 };

    if (family != MADE_NOTHING && made_rarely(k, 8))
        put_replaced(k, family, value);
    switch (family) {
    case MADE_SIMPLE: put_simple(v, k, value); return;
    case MADE_OLD_BUCKETS: put_buckets(m, v, k, value); return;
    case MADE_OLD_IMAGE: put_picture(v, k, value); return;
    case MADE_OLD_AUDIO: put_clip(v, k, value); return;
    case MADE_NOTHING: return;
    case MADE_OLDEST_BUCKETS:
        v->stored = EVENTLOG_STORED_OLD_HISTOGRAM;
        made_bytes(k, &value->bytes, 3, "old", 3);
        made_part_end(value);
        return;
    case MADE_NUMBER: number(k, &t); break;
    case MADE_BUCKETS:
    case MADE_ARRAY: array(k, &t, family == MADE_BUCKETS); break;
    default: strings(k, &t, family); break;
    }
    put_tensor(m, v, k, &t, value);
    if (family == MADE_IMAGES) {
        v->width = v->height = 1;
        v->pictures = t.count - 2;
    }
    buffer_release(&t.strings);
}

void made_value(struct made_events *m, struct maker *k, enum made_family family, struct buffer *tag, int described,
                struct made_parts *out)
{
    static const char *const plugins[MADE_FAMILIES] = {
        "scalars", "scalars", "histograms", "histograms", "images",  "images",
        "audio",   "audio",   "text",       "mine",       "hparams", "mine",
    };
    struct made_value v = { 0 };
    struct made_parts value = { 0 };
    struct buffer bytes = BUFFER_EMPTY, name = BUFFER_EMPTY;

    if (made_rarely(k, 24))
        made_bytes(k, &value.bytes, 1, "replaced", 8);
    if (tag->length || k->zeros || value.bytes.length || decide(k->d, 2)) {
        made_text(k, &value.bytes, 1, tag);
        made_part_end(&value);
    }
    v.tag = made_keep(m, tag->data, tag->length);
    if (made_rarely(k, 16)) {
        buffer_append_text(&name, "node");
        made_text(k, &value.bytes, 7, &name);
        made_part_end(&value);
        buffer_release(&name);
    }
    put_content(m, &v, k, family, &value);
    if (described)
        put_metadata(m, &v, k, plugins[family], &value);
    made_finish(k, &value, MADE_VALUE, &bytes);
    v.data = made_keep(m, bytes.data, bytes.length);
    made_bytes(k, &out->bytes, 1, bytes.data, bytes.length);
    made_part_end(out);
    buffer_release(&bytes);
    buffer_clear(tag);
    m->values = made_grow(m->values, sizeof v, m->value_count, &m->value_capacity);
    m->values[m->value_count++] = v;
}
