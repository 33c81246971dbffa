#include "eventlog/format/event_decode.h"

#include "base/bytes.h"
#include "base/error.h"
#include "eventlog/format/usual_event.h"
#include "eventlog/format/wire.h"

#include <string.h>

/* 1: f; 0: these bytes are not a field (such as the end of a group that was never opened). */
static int take(const uint8_t **p, const uint8_t *end, struct wire_field *f)
{
    return wire_take(p, end, f) == 1;
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

enum list { NO_LIST, FLOATS, DOUBLES, INTS, LONGS, TRUTHS, HALVES, WORDS, DOUBLEWORDS, LISTS };

struct tensor {
    int dtype, rank, one_element;
    const uint8_t *content;
    size_t content_length;
    struct {
        uint64_t count, last; /* elements, and the last one's bits */
    } lists[LISTS];
};

/* The lists by field number: float_val, double_val, int_val, int64_val, bool_val, half_val, uint32_val, uint64_val. */
static const struct {
    enum list list;
    enum wire_type type;
} fields[] = {
    [5] = { FLOATS, WIRE_FIXED32 }, [6] = { DOUBLES, WIRE_FIXED64 },     [7] = { INTS, WIRE_VARINT },
    [10] = { LONGS, WIRE_VARINT },  [11] = { TRUTHS, WIRE_VARINT },      [13] = { HALVES, WIRE_VARINT },
    [16] = { WORDS, WIRE_VARINT },  [17] = { DOUBLEWORDS, WIRE_VARINT },
};

/* For a dtype that a scalar may have: its typed list, and the bytes per element in tensor_content. */
static const struct {
    enum list list;
    size_t size;
} dtypes[] = {
    [EVENT_FLOAT] = { FLOATS, 4 },       [EVENT_DOUBLE] = { DOUBLES, 8 }, [EVENT_INT32] = { INTS, 4 },
    [EVENT_UINT8] = { INTS, 1 },         [EVENT_INT16] = { INTS, 2 },     [EVENT_INT8] = { INTS, 1 },
    [EVENT_INT64] = { LONGS, 8 },        [EVENT_BOOL] = { TRUTHS, 1 },    [EVENT_BFLOAT16] = { HALVES, 2 },
    [EVENT_UINT16] = { INTS, 2 },        [EVENT_HALF] = { HALVES, 2 },    [EVENT_UINT32] = { WORDS, 4 },
    [EVENT_UINT64] = { DOUBLEWORDS, 8 },
};

static int scan_shape(const uint8_t *p, size_t n, struct tensor *t)
{
    const uint8_t *end = p + n;
    struct wire_field f, inner;

    while (p < end) {
        uint64_t size = 0;

        if (!take(&p, end, &f))
            return 0;
        if (f.number != 2 || f.type != WIRE_BYTES)
            continue;
        for (const uint8_t *q = f.bytes, *stop = q + f.length; q < stop;) {
            if (!take(&q, stop, &inner))
                return 0;
            if (inner.number == 1 && inner.type == WIRE_VARINT)
                size = inner.integer;
        }
        t->rank += t->rank < 1000;
        t->one_element &= size == 1;
    }
    return 1;
}

/* One list of numbers, a single element or a packed run of them. */
static int scan_list(const struct wire_field *f, enum wire_type type, uint64_t *count, uint64_t *last)
{
    size_t size = type == WIRE_FIXED32 ? 4 : 8;

    if (f->type == type) {
        ++*count;
        *last = f->integer;
    } else if (f->type == WIRE_BYTES && type == WIRE_VARINT) {
        for (size_t i = 0; i < f->length; ++*count) {
            int n = get_varint(f->bytes + i, f->length - i, last);

            if (n <= 0)
                return 0;
            i += (size_t)n;
        }
    } else if (f->type == WIRE_BYTES) {
        if (f->length % size)
            return 0;
        *count += f->length / size;
        if (f->length)
            *last = size == 4 ? get_le32(f->bytes + f->length - 4) : get_le64(f->bytes + f->length - 8);
    }
    return 1;
}

static int scan_tensor(const uint8_t *p, size_t n, struct tensor *t)
{
    const uint8_t *end = p + n;
    struct wire_field f;
    int good = 1;

    while (p < end && good) {
        if (!take(&p, end, &f))
            return 0;
        if (f.number == 1 && f.type == WIRE_VARINT) {
            t->dtype = (int)(int32_t)f.integer;
        } else if (f.number == 2 && f.type == WIRE_BYTES) {
            good = scan_shape(f.bytes, f.length, t);
        } else if (f.number == 4 && f.type == WIRE_BYTES) {
            t->content = f.bytes;
            t->content_length = f.length;
        } else if (f.number < sizeof fields / sizeof *fields && fields[f.number].list) {
            enum list list = fields[f.number].list;

            good = scan_list(&f, fields[f.number].type, &t->lists[list].count, &t->lists[list].last);
        }
    }
    return good;
}

/* The bits of the single element, from tensor_content if there is any, else from the typed list. 1, or 0 if there is
 * not exactly one element. */
static int tensor_bits(const struct tensor *t, enum list list, size_t size, uint64_t *bits)
{
    if (t->content_length) {
        if (t->content_length != size)
            return 0;
        *bits = size == 4   ? get_le32(t->content)
                : size == 8 ? get_le64(t->content)
                : size == 2 ? get_le16(t->content)
                            : *t->content;
        return 1;
    }
    *bits = t->lists[list].last;
    return t->lists[list].count == 1;
}

/* After the first four, types in which only some writers log scalars: the default loader shows none of them, the Python
 * loader most. */
static double bits_number(int dtype, uint64_t bits)
{
    switch (dtype) {
    case EVENT_FLOAT: return (double)bits_float((uint32_t)bits);
    case EVENT_DOUBLE: return bits_double(bits);
    case EVENT_INT32: return (double)(int32_t)(uint32_t)bits;
    case EVENT_INT64: return (double)(int64_t)bits;
    case EVENT_UINT8: return (uint8_t)bits;
    case EVENT_BOOL: return bits != 0;
    case EVENT_INT8: return (int8_t)(uint8_t)bits;
    case EVENT_INT16: return (int16_t)(uint16_t)bits;
    case EVENT_UINT16: return (uint16_t)bits;
    case EVENT_HALF: return half_double((uint16_t)bits);
    case EVENT_BFLOAT16: return (double)bits_float((uint32_t)(uint16_t)bits << 16);
    case EVENT_UINT32: return (double)(uint32_t)bits;
    default: return (double)bits;
    }
}

/* 2^63 and 2^64 do not fit back into the integer type, so compare with them first. */
static int is_rounded(int dtype, uint64_t bits, double number)
{
    return (dtype == EVENT_INT64 && (number >= 9223372036854775808.0 || (int64_t)number != (int64_t)bits)) ||
           (dtype == EVENT_UINT64 && (number >= 18446744073709551616.0 || (uint64_t)number != bits));
}

static void tensor_number(const struct tensor *t, struct event_value *v)
{
    uint64_t bits;

    v->dtype = t->dtype;
    v->rank = t->rank;
    if (t->dtype == EVENT_FLOAT && !t->rank &&
        (t->lists[FLOATS].count == 1 || (!t->lists[FLOATS].count && t->content_length == 4))) {
        v->is_shown = 1;
        v->shown = (double)bits_float(t->lists[FLOATS].count ? (uint32_t)t->lists[FLOATS].last : get_le32(t->content));
    }
    if (!t->one_element || t->dtype < 0 || (size_t)t->dtype >= sizeof dtypes / sizeof *dtypes ||
        !dtypes[t->dtype].list || !tensor_bits(t, dtypes[t->dtype].list, dtypes[t->dtype].size, &bits))
        return;
    v->is_number = 1;
    v->number = bits_number(t->dtype, bits);
    v->is_rounded = is_rounded(t->dtype, bits, v->number);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static int utf8(const struct wire_field *f)
{
    return utf8_valid(f->bytes, f->length, NULL);
}

static int scan_metadata(const uint8_t *p, size_t n, struct event_value *v)
{
    const uint8_t *end = p + n;
    struct wire_field f, inner;

    v->has_metadata = 1;
    v->metadata = p;
    v->metadata_length = n;
    while (p < end) {
        if (!take(&p, end, &f))
            return 0;
        if (f.type != WIRE_BYTES)
            continue;
        if (f.number == 2 || f.number == 3)
            v->is_utf8 &= utf8(&f);
        if (f.number != 1)
            continue;
        for (const uint8_t *q = f.bytes, *stop = q + f.length; q < stop;) {
            if (!take(&q, stop, &inner))
                return 0;
            if (inner.number == 1 && inner.type == WIRE_BYTES) {
                v->plugin = (const char *)inner.bytes;
                v->plugin_length = inner.length;
                v->is_utf8 &= utf8(&inner);
            }
        }
    }
    return 1;
}

/* Skipped sub-messages must still be valid protobuf, or a reader that parses them rejects the event. */
static int well_formed(const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    struct wire_field f;

    while (p < end)
        if (!take(&p, end, &f))
            return 0;
    return 1;
}

/* Member by member: of a struct of this size compilers clear all at once, by an instruction that takes longer to begin
 * than the rest of a usual event. */
static void value_init(struct event_value *v)
{
    v->tag = v->plugin = "";
    v->tag_length = v->plugin_length = 0;
    v->kind = EVENT_VALUE_NONE;
    v->dtype = v->rank = 0;
    v->is_number = v->is_rounded = v->is_shown = v->has_metadata = 0;
    v->number = v->shown = 0;
    v->metadata = v->bytes = NULL;
    v->metadata_length = v->length = 0;
    v->is_utf8 = 1;
}

/* 1, or 0 with *bad where the scan gave up. */
static int scan_value(const uint8_t *p, size_t n, struct event_value *v, const uint8_t **bad)
{
    static const struct tensor nothing = { .one_element = 1 };
    const uint8_t *end = p + n;
    struct tensor tensor = nothing;
    struct wire_field f;
    int good = 1;

    value_init(v);
    v->bytes = p;
    v->length = n;
    while (p < end && good) {
        *bad = p;
        if (!take(&p, end, &f))
            return 0;
        if (f.number == 2 && f.type == WIRE_FIXED32) {
            v->kind = EVENT_VALUE_SIMPLE;
            v->number = (double)bits_float((uint32_t)f.integer);
        } else if (f.type == WIRE_BYTES) {
            enum event_kind before = v->kind;

            switch (f.number) {
            case 1:
                v->tag = (const char *)f.bytes;
                v->tag_length = f.length;
                v->is_utf8 &= utf8(&f);
                break;
            case 3: v->kind = EVENT_VALUE_OLD_HISTOGRAM; break;
            case 4:
                v->kind = EVENT_VALUE_IMAGE;
                good = well_formed(f.bytes, f.length);
                break;
            case 5:
                v->kind = EVENT_VALUE_HISTOGRAM;
                good = well_formed(f.bytes, f.length);
                break;
            case 6:
                v->kind = EVENT_VALUE_AUDIO;
                good = well_formed(f.bytes, f.length);
                break;
            case 7: v->is_utf8 &= utf8(&f); break;
            case 8:
                v->kind = EVENT_VALUE_TENSOR;
                if (before != EVENT_VALUE_TENSOR)
                    tensor = nothing; /* the last member of a oneof counts; two tensors in a row merge */
                good = scan_tensor(f.bytes, f.length, &tensor);
                break;
            case 9: good = scan_metadata(f.bytes, f.length, v); break;
            default: break;
            }
        }
    }
    if (v->kind == EVENT_VALUE_SIMPLE) {
        v->is_number = v->is_shown = 1;
        v->shown = v->number;
    } else if (v->kind == EVENT_VALUE_TENSOR) {
        tensor_number(&tensor, v);
    }
    return good;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static int scan_summary(const struct wire_field *summary, struct event *event, const uint8_t **bad)
{
    const uint8_t *p = summary->bytes, *end = p + summary->length;
    struct event_value value;
    struct wire_field f;

    while (p < end) {
        *bad = p;
        if (!take(&p, end, &f))
            return 0;
        if (f.number != 1 || f.type != WIRE_BYTES)
            continue;
        if (!scan_value(f.bytes, f.length, event->values ? &value : &event->first, bad))
            return 0;
        event->is_utf8 &= event->values ? value.is_utf8 : event->first.is_utf8;
        event->values++;
    }
    return 1;
}

static int scan_session(const struct wire_field *session, struct event *event)
{
    const uint8_t *p = session->bytes, *end = p + session->length;
    struct wire_field f;

    while (p < end) {
        if (!take(&p, end, &f))
            return 0;
        if (f.number == 1 && f.type == WIRE_VARINT)
            event->session = (uint32_t)f.integer <= EVENT_SESSION_CHECKPOINT ? (enum event_session)(uint32_t)f.integer
                                                                             : EVENT_SESSION_NONE;
        else if ((f.number == 2 || f.number == 3) && f.type == WIRE_BYTES)
            event->is_utf8 &= utf8(&f);
    }
    return 1;
}

/* f is a member of the oneof `what`, at `from`: the walk over values begins at the first summary that no other member
 * follows. */
static int scan_what(const struct wire_field *f, const uint8_t *from, struct event *event, const uint8_t **bad)
{
    enum event_what what = (enum event_what)f->number;

    if (event->what != what) {
        event->what = what;
        event->values = 0;
        event->session = EVENT_SESSION_NONE;
        event->bytes = from;
    }
    if (what == EVENT_SUMMARY)
        return scan_summary(f, event, bad);
    if (what == EVENT_SESSION_LOG)
        return scan_session(f, event);
    if (what == EVENT_FILE_VERSION)
        event->is_utf8 &= utf8(f);
    return what != EVENT_LOG_MESSAGE && what != EVENT_RUN_METADATA ? 1 : well_formed(f->bytes, f->length);
}

/* The events that need no scan; every other event takes the long way, with the same result. */
static int quick(const uint8_t *p, size_t n, struct event *event)
{
    struct event_value *v = &event->first;
    struct usual_event u;

    if (!usual_event(p, n, &u))
        return 0;
    value_init(v);
    v->bytes = u.summary + 4;
    v->length = (size_t)(p + n - v->bytes);
    v->tag = u.tag;
    v->tag_length = u.tag_length;
    v->kind = u.is_tensor ? EVENT_VALUE_TENSOR : EVENT_VALUE_SIMPLE;
    v->dtype = u.is_tensor ? EVENT_FLOAT : 0;
    v->number = v->shown = u.number;
    v->is_number = v->is_shown = 1;
    if (u.metadata) {
        v->has_metadata = 1;
        v->metadata = u.metadata;
        v->metadata_length = 11;
        v->plugin = (const char *)u.metadata + 4;
        v->plugin_length = 7;
    }
    v->is_utf8 = utf8_valid(v->tag, v->tag_length, NULL);
    event->wall_time = u.wall_time;
    event->step = u.step;
    event->what = EVENT_SUMMARY;
    event->session = EVENT_SESSION_NONE;
    event->is_utf8 = v->is_utf8;
    event->values = 1;
    event->data = p;
    event->length = n;
    event->is_usual = v->is_utf8;
    event->is_damaged = 0;
    event->bytes = u.summary;
    event->end = p + n;
    return 1;
}

int event_decode(const uint8_t *bytes, size_t n, struct event *event, size_t *bad)
{
    const uint8_t *p = bytes, *end = bytes + n, *place = bytes;
    struct wire_field f;
    int good = 1;

    if (quick(bytes, n, event))
        return OK;
    memset(event, 0, sizeof *event);
    event->is_utf8 = 1;
    event->data = event->bytes = bytes;
    event->length = n;
    event->end = end;
    value_init(&event->first);
    while (p < end) {
        const uint8_t *from = place = p;

        if (!(good = take(&p, end, &f)))
            break;
        if (f.number == 1 && f.type == WIRE_FIXED64)
            event->wall_time = bits_double(f.integer);
        else if (f.number == 2 && f.type == WIRE_VARINT)
            event->step = (int64_t)f.integer;
        else if (f.number >= EVENT_FILE_VERSION && f.number <= EVENT_META_GRAPH && f.type == WIRE_BYTES)
            good = scan_what(&f, from, event, &place);
        else if (f.number == 10 && f.type == WIRE_BYTES)
            good = well_formed(f.bytes, f.length);
        if (!good)
            break;
    }
    if (!good && bad)
        *bad = (size_t)(place - bytes);
    return good ? OK : ERR_CORRUPT;
}

/* Not the value: nearly every event has one, which is there already. */
void event_values_init(struct event_values *v, const struct event *event)
{
    v->event = event;
    v->next = event->bytes;
    v->inner = v->inner_end = NULL;
    v->given = 0;
}

const struct event_value *event_values_next(struct event_values *v)
{
    const uint8_t *bad;
    struct wire_field f;

    if (v->event->what != EVENT_SUMMARY || v->given == v->event->values)
        return NULL;
    if (v->event->values == 1) {
        v->given++;
        return &v->event->first;
    }
    for (;;) {
        while (v->inner < v->inner_end) {
            if (!take(&v->inner, v->inner_end, &f))
                return NULL;
            if (f.number == 1 && f.type == WIRE_BYTES) {
                v->given++;
                return scan_value(f.bytes, f.length, &v->value, &bad) ? &v->value : NULL;
            }
        }
        if (v->next >= v->event->end || !take(&v->next, v->event->end, &f))
            return NULL;
        if (f.number == 5 && f.type == WIRE_BYTES) {
            v->inner = f.bytes;
            v->inner_end = f.bytes + f.length;
        }
    }
}
