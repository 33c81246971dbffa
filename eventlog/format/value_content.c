#include "eventlog/format/value_content.h"

#include "base/bytes.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/wire.h"

#include <string.h>

static const uint8_t empty[] = "";

/* The last field of that number in a message: 1, or 0 if there is none. */
static int last_field(const uint8_t *p, size_t n, uint64_t number, struct span *found)
{
    const uint8_t *end = p + n;
    struct wire_field f;
    int any = 0;

    *found = (struct span){ empty, 0 };
    while (wire_take(&p, end, &f) == 1)
        if (f.number == number && f.type == WIRE_BYTES) {
            *found = (struct span){ f.bytes, f.length };
            any = 1;
        }
    return any;
}

/* The message in the value, if it is the last member of its oneof: 1, or 0 if the last member is another one. */
static int content(const uint8_t *value, size_t n, enum event_kind kind, struct span *found)
{
    const uint8_t *end = value + n;
    enum event_kind last = EVENT_VALUE_NONE;
    struct wire_field f;

    *found = (struct span){ empty, 0 };
    while (wire_take(&value, end, &f) == 1) {
        int is_float = f.number == EVENT_VALUE_SIMPLE;

        if ((f.number > EVENT_VALUE_AUDIO && f.number != EVENT_VALUE_TENSOR) || f.number < EVENT_VALUE_SIMPLE ||
            f.type != (is_float ? WIRE_FIXED32 : WIRE_BYTES))
            continue;
        last = (enum event_kind)f.number;
        *found = (struct span){ f.bytes, f.length };
    }
    return last == kind;
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

static void read_shape(struct tensor_content *t, const uint8_t *p, const uint8_t *end)
{
    struct wire_field f, inner;

    while (wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;
        int64_t size = 0;

        if (f.number != 2 || f.type != WIRE_BYTES)
            continue;
        while (wire_take(&q, stop, &inner) == 1)
            if (inner.number == 1 && inner.type == WIRE_VARINT)
                size = (int64_t)inner.integer;
        if (t->rank < TENSOR_RANK)
            t->shape[t->rank] = size;
        t->rank += t->rank < 1000;
        if (size < 0 || t->elements == UINT64_MAX || __builtin_mul_overflow(t->elements, (uint64_t)size, &t->elements))
            t->elements = UINT64_MAX;
    }
}

int tensor_content_read(struct tensor_content *t, const uint8_t *value, size_t n)
{
    const uint8_t *p, *end;
    struct wire_field f;

    memset(t, 0, sizeof *t);
    t->elements = 1;
    if (!content(value, n, EVENT_VALUE_TENSOR, &t->message))
        return 0;
    p = t->message.bytes;
    end = p + t->message.length;
    while (wire_take(&p, end, &f) == 1) {
        if (f.number == 1 && f.type == WIRE_VARINT)
            t->dtype = (int)(int32_t)f.integer;
        else if (f.number == 2 && f.type == WIRE_BYTES)
            read_shape(t, f.bytes, f.bytes + f.length);
    }
    return 1;
}

int tensor_content_string(const struct tensor_content *t, size_t *at, struct span *text)
{
    const uint8_t *p = t->message.bytes + *at, *end = t->message.bytes + t->message.length;
    struct wire_field f;

    while (wire_take(&p, end, &f) == 1)
        if (f.number == 8 && f.type == WIRE_BYTES) {
            *text = (struct span){ f.bytes, f.length };
            *at = (size_t)(p - t->message.bytes);
            return 1;
        }
    return 0;
}

/* Per type: bytes of an element, the field of its typed list, how many entries of the list make an element. */
static const struct dtype {
    uint8_t size, field, entries;
} dtypes[] = {
    [EVENT_FLOAT] = { 4, 5, 1 },     [EVENT_DOUBLE] = { 8, 6, 1 },  [EVENT_INT32] = { 4, 7, 1 },
    [EVENT_UINT8] = { 1, 7, 1 },     [EVENT_INT16] = { 2, 7, 1 },   [EVENT_INT8] = { 1, 7, 1 },
    [EVENT_COMPLEX64] = { 8, 9, 2 }, [EVENT_INT64] = { 8, 10, 1 },  [EVENT_BOOL] = { 1, 11, 1 },
    [EVENT_BFLOAT16] = { 2, 13, 1 }, [EVENT_UINT16] = { 2, 7, 1 },  [EVENT_COMPLEX128] = { 16, 12, 2 },
    [EVENT_HALF] = { 2, 13, 1 },     [EVENT_UINT32] = { 4, 16, 1 }, [EVENT_UINT64] = { 8, 17, 1 },
};

static const struct dtype *dtype_of(int dtype)
{
    return dtype >= 0 && (size_t)dtype < sizeof dtypes / sizeof *dtypes ? &dtypes[dtype] : &dtypes[0];
}

size_t tensor_content_item(int dtype)
{
    return dtype_of(dtype)->size;
}

/* An integer of the list. Of bool_val any number but 0 is true. */
static void append_integer(struct buffer *out, uint64_t bits, const struct dtype *d)
{
    uint8_t bytes[8];

    put_le64(bytes, d->field == 11 ? bits != 0 : bits);
    buffer_append(out, bytes, d->size / d->entries);
}

/* Appends what field f adds to the list: a number, or a packed run of them. 1, or 0 if the run ends inside a number. */
static int append_list(const struct wire_field *f, const struct dtype *d, struct buffer *out)
{
    size_t size = d->size / d->entries;

    if (f->type == WIRE_FIXED32 || f->type == WIRE_FIXED64 || f->type == WIRE_VARINT) {
        append_integer(out, f->integer, d);
        return 1;
    }
    if (f->type != WIRE_BYTES)
        return 0;
    if (d->field == 5 || d->field == 6 || d->field == 9 || d->field == 12) { /* fixed width on the wire as well */
        buffer_append(out, f->bytes, f->length);
        return f->length % size == 0;
    }
    for (size_t i = 0; i < f->length;) {
        uint64_t v;
        int n = get_varint(f->bytes + i, f->length - i, &v);

        if (n <= 0)
            return 0;
        append_integer(out, v, d);
        i += (size_t)n;
    }
    return 1;
}

int tensor_content_bytes(const struct tensor_content *t, size_t limit, struct buffer *out)
{
    const uint8_t *p = t->message.bytes, *end = p + t->message.length;
    const struct dtype *d = dtype_of(t->dtype);
    struct buffer list = BUFFER_EMPTY;
    struct span content;
    struct wire_field f;
    int good = 1;
    size_t n;

    if (!d->size || t->elements > limit / d->size)
        return 0;
    n = (size_t)t->elements * d->size;
    if (last_field(p, t->message.length, 4, &content) && content.length) {
        if (content.length != n)
            return 0;
        buffer_append(out, content.bytes, n);
        return buffer_ok(out);
    }
    while (good && wire_take(&p, end, &f) == 1)
        if (f.number == d->field)
            good = append_list(&f, d, &list);
    good = good && buffer_ok(&list);
    out->failed |= list.failed;
    if (good && list.length == n)
        buffer_append(out, buffer_text(&list), n);
    else if (good && list.length == d->size)
        for (size_t i = 0; i < t->elements; i++)
            buffer_append(out, list.data, d->size);
    else
        good = 0;
    buffer_release(&list);
    return good && buffer_ok(out);
}

/* ---- histograms ------------------------------------------------------------------------------------------------ */

static double double_at(const struct span *s, size_t i)
{
    return bits_double(get_le64(s->bytes + 8 * i));
}

static void append_row(struct buffer *out, double left, double right, double count)
{
    const struct histogram_row row = { left, right, count };

    buffer_append(out, &row, sizeof row);
}

static int legacy_rows(const struct span *message, struct buffer *out, size_t *count)
{
    const uint8_t *p = message->bytes, *end = p + message->length;
    struct buffer lists[2] = { BUFFER_EMPTY, BUFFER_EMPTY };
    static const struct dtype doubles = { 8, 6, 1 };
    struct span limits, buckets;
    size_t first = 0, behind;
    double min = 0, max = 0;
    struct wire_field f;
    int good = 1;

    while (good && wire_take(&p, end, &f) == 1) {
        if (f.number == 1 && f.type == WIRE_FIXED64)
            min = bits_double(f.integer);
        else if (f.number == 2 && f.type == WIRE_FIXED64)
            max = bits_double(f.integer);
        else if (f.number == 6 || f.number == 7)
            good = append_list(&f, &doubles, &lists[f.number - 6]);
    }
    limits = (struct span){ (const uint8_t *)buffer_text(&lists[0]), lists[0].length / 8 };
    buckets = (struct span){ (const uint8_t *)buffer_text(&lists[1]), lists[1].length / 8 };
    behind = limits.length < buckets.length ? limits.length : buckets.length;
    while (first < behind && !(double_at(&buckets, first) > 0))
        first++;
    while (behind > first && !(double_at(&buckets, behind - 1) > 0))
        behind--;
    for (size_t i = first; i < behind; i++)
        append_row(out, i == first ? min : double_at(&limits, i - 1), i + 1 == behind ? max : double_at(&limits, i),
                   double_at(&buckets, i));
    *count = behind - first;
    out->failed |= lists[0].failed | lists[1].failed;
    good = good && buffer_ok(out);
    buffer_release(&lists[0]);
    buffer_release(&lists[1]);
    return good;
}

int histogram_content_rows(const uint8_t *value, size_t n, struct buffer *out, size_t *count)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct tensor_content t;
    struct span message;
    int good, single;

    *count = 0;
    if (content(value, n, EVENT_VALUE_HISTOGRAM, &message))
        return legacy_rows(&message, out, count);
    if (!tensor_content_read(&t, value, n) || t.rank != 2 || t.shape[1] != 3 ||
        (t.dtype != EVENT_FLOAT && t.dtype != EVENT_DOUBLE))
        return 0;
    single = t.dtype == EVENT_FLOAT;
    /* More rows than bytes cannot be meant: a single number that stands for all of them is not a histogram. */
    good = tensor_content_bytes(&t, 2 * t.message.length, &bytes);
    for (size_t i = 0; good && i + 3 <= t.elements; i += 3) {
        double row[3];

        for (size_t k = 0; k < 3; k++)
            row[k] = single ? (double)bits_float(get_le32(bytes.data + 4 * (i + k)))
                            : bits_double(get_le64(bytes.data + 8 * (i + k)));
        append_row(out, row[0], row[1], row[2]);
        ++*count;
    }
    out->failed |= bytes.failed;
    buffer_release(&bytes);
    return good && buffer_ok(out);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

int image_content_read(const uint8_t *value, size_t n, struct span *file)
{
    struct span message;

    return content(value, n, EVENT_VALUE_IMAGE, &message) && last_field(message.bytes, message.length, 4, file);
}

int audio_content_read(const uint8_t *value, size_t n, struct span *file)
{
    struct span message;

    return content(value, n, EVENT_VALUE_AUDIO, &message) && last_field(message.bytes, message.length, 4, file);
}

/* 0 if the text is not a number, or larger than any picture's side. */
static int64_t decimal(const struct span *text)
{
    int64_t v = 0;

    for (size_t i = 0; i < text->length; i++) {
        if (i == 10 || text->bytes[i] < '0' || text->bytes[i] > '9')
            return 0;
        v = v * 10 + text->bytes[i] - '0';
    }
    return v;
}

void image_content_size(const uint8_t *value, size_t n, int64_t *width, int64_t *height)
{
    struct tensor_content t;
    struct wire_field f;
    struct span found;
    size_t at = 0;

    *width = *height = 0;
    if (content(value, n, EVENT_VALUE_IMAGE, &found)) {
        const uint8_t *p = found.bytes, *end = p + found.length;

        while (wire_take(&p, end, &f) == 1)
            if (f.type == WIRE_VARINT && (f.number == 1 || f.number == 2))
                *(f.number == 1 ? height : width) = (int64_t)f.integer;
    } else if (tensor_content_read(&t, value, n) && tensor_content_string(&t, &at, &found)) {
        *width = decimal(&found);
        *height = tensor_content_string(&t, &at, &found) ? decimal(&found) : 0;
    }
}

const char *media_extension(const uint8_t *bytes, size_t n)
{
    static const struct {
        const char *start, *extension;
        size_t n;
    } kinds[] = {
        { "\x89PNG\r\n\x1a\n", ".png", 8 },
        { "\xff\xd8\xff", ".jpg", 3 },
        { "GIF8", ".gif", 4 },
        { "BM", ".bmp", 2 },
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].n && !memcmp(bytes, kinds[i].start, kinds[i].n))
            return kinds[i].extension;
    return n >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WAVE", 4) ? ".wav" : ".bin";
}
