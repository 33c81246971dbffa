#include "tests/fuzz/made_event_wire.h"

#include "base/bytes.h"

#include <string.h>

enum { VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 };
/* Both implementations of protobuf that matter take keys and lengths of 5 bytes at most, other varints of 10. */
enum { KEY_MOST = 5, INTEGER_MOST = 10 };
enum { UNKNOWN_FIELD = 100, FIELD_MAX = 0x1fffffff };
enum { DEPTH_MOST = 100 }; /* of messages and groups inside an event, one in the other */

int made_rarely(struct maker *k, uint64_t n)
{
    return decide(k->d, n) == n - 1;
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

/* In exactly n bytes, or in as many more as it takes. */
static void put(struct buffer *b, uint64_t v, int n)
{
    for (; v >= 0x80 || n > 1; v >>= 7, n--)
        buffer_append_byte(b, (int)(v & 0x7f) | 0x80);
    buffer_append_byte(b, (int)v);
}

void made_varint(struct maker *k, struct buffer *b, uint64_t v, int most)
{
    put(b, v, k->overlong && made_rarely(k, 6) ? 1 + (int)decide(k->d, (uint64_t)most) : 1);
}

static void key(struct maker *k, struct buffer *b, uint64_t field, uint64_t type)
{
    made_varint(k, b, field << 3 | type, KEY_MOST);
}

void made_integer(struct maker *k, struct buffer *b, uint64_t field, uint64_t v)
{
    key(k, b, field, VARINT);
    made_varint(k, b, v, INTEGER_MOST);
}

void made_fixed64(struct maker *k, struct buffer *b, uint64_t field, uint64_t bits)
{
    uint8_t bytes[8];

    key(k, b, field, FIXED64);
    put_le64(bytes, bits);
    buffer_append(b, bytes, sizeof bytes);
}

void made_fixed32(struct maker *k, struct buffer *b, uint64_t field, uint32_t bits)
{
    uint8_t bytes[4];

    key(k, b, field, FIXED32);
    put_le32(bytes, bits);
    buffer_append(b, bytes, sizeof bytes);
}

void made_bytes(struct maker *k, struct buffer *b, uint64_t field, const void *bytes, size_t n)
{
    key(k, b, field, BYTES);
    made_varint(k, b, n, KEY_MOST);
    if (n)
        buffer_append(b, bytes, n);
}

void made_text(struct maker *k, struct buffer *b, uint64_t field, struct buffer *text)
{
    /* A byte that begins nothing, an overlong form, a surrogate, above U+10FFFF, cut, a byte that only goes on. */
    static const char *const bad[] = { "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80" };

    if (k->fault == MADE_NOT_UTF8 && (k->fault_in == MADE_SOURCE || decide(k->d, 2) == 0)) {
        buffer_append_text(text, bad[decide(k->d, sizeof bad / sizeof *bad)]);
        if (decide(k->d, 2))
            buffer_append_text(text, "x");
        k->fault = MADE_NO_FAULT;
    }
    made_bytes(k, b, field, text->data, text->length);
}

/* ---- faults ---------------------------------------------------------------------------------------------------- */

/* The known fields of each message and the wire type of each: those that readers may take amiss. */
static const struct {
    uint8_t number, type;
} known[MADE_MESSAGES][8] = {
    [MADE_EVENT] = { { 1, FIXED64 }, { 2, VARINT }, { 3, BYTES }, { 5, BYTES }, { 7, BYTES }, { 10, BYTES } },
    [MADE_SUMMARY] = { { 1, BYTES } },
    [MADE_VALUE] = { { 1, BYTES },
                     { 2, FIXED32 },
                     { 4, BYTES },
                     { 5, BYTES },
                     { 7, BYTES },
                     { 8, BYTES },
                     { 9, BYTES } },
    [MADE_METADATA] = { { 1, BYTES }, { 2, BYTES }, { 3, BYTES }, { 4, VARINT } },
    [MADE_PLUGIN_DATA] = { { 1, BYTES }, { 2, BYTES } },
    [MADE_TENSOR] = { { 1, VARINT }, { 2, BYTES }, { 3, VARINT }, { 4, BYTES }, { 8, BYTES } },
    [MADE_SHAPE] = { { 2, BYTES }, { 3, VARINT } },
    [MADE_DIM] = { { 1, VARINT }, { 2, BYTES } },
    [MADE_IMAGE] = { { 1, VARINT }, { 2, VARINT }, { 3, VARINT }, { 4, BYTES } },
    [MADE_HISTOGRAM] = { { 1, FIXED64 }, { 2, FIXED64 }, { 3, FIXED64 }, { 4, FIXED64 }, { 5, FIXED64 } },
    [MADE_AUDIO] = { { 1, FIXED32 }, { 2, VARINT }, { 3, VARINT }, { 4, BYTES }, { 5, BYTES } },
    [MADE_SESSION] = { { 1, VARINT }, { 2, BYTES }, { 3, BYTES } },
    [MADE_LOG_MESSAGE] = { { 1, VARINT }, { 2, BYTES } },
    [MADE_RUN_METADATA] = { { 1, BYTES }, { 2, BYTES } },
    [MADE_SOURCE] = { { 1, BYTES } },
};

/* In how many others each message is. */
static const uint8_t depths[MADE_MESSAGES] = {
    [MADE_SUMMARY] = 1, [MADE_VALUE] = 2,       [MADE_METADATA] = 3,     [MADE_PLUGIN_DATA] = 4, [MADE_TENSOR] = 3,
    [MADE_SHAPE] = 4,   [MADE_DIM] = 5,         [MADE_IMAGE] = 3,        [MADE_HISTOGRAM] = 3,   [MADE_AUDIO] = 3,
    [MADE_SESSION] = 1, [MADE_LOG_MESSAGE] = 1, [MADE_RUN_METADATA] = 1, [MADE_SOURCE] = 1,
};

/* A field of that number and type, with little in it. */
static void put_field(struct buffer *b, uint64_t number, uint64_t type)
{
    put(b, number << 3 | type, 1);
    if (type == GROUP)
        put(b, number << 3 | GROUP_END, 1);
    else if (type == BYTES)
        buffer_append(b, "\1x", 2);
    else
        buffer_append(b, "\1\0\0\0\0\0\0\0", type == FIXED64 ? 8 : type == FIXED32 ? 4 : 1);
}

static void put_other_type(struct maker *k, struct buffer *b, enum made_message message)
{
    static const uint8_t types[] = { VARINT, FIXED64, BYTES, GROUP, FIXED32 };
    size_t fields = 0, at, type;

    while (fields < sizeof known[0] / sizeof *known[0] && known[message][fields].number)
        fields++;
    at = decide(k->d, fields);
    type = decide(k->d, sizeof types);
    if (types[type] == known[message][at].type)
        type = (type + 1) % sizeof types;
    put_field(b, known[message][at].number, types[type]);
}

static void put_groups(struct buffer *b, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        put(b, UNKNOWN_FIELD << 3 | GROUP, 1);
    for (size_t i = 0; i < depth; i++)
        put(b, UNKNOWN_FIELD << 3 | GROUP_END, 1);
}

/* Bytes that are no field. Those that end early stand at the end of the message, or what follows would complete them;
 * 1: so. */
static int put_no_field(struct maker *k, struct buffer *b)
{
    size_t n;

    switch (k->fault) {
    case MADE_VARINT_CUT:
        put(b, UNKNOWN_FIELD << 3, 1);
        for (n = 1 + decide(k->d, 9); n; n--)
            buffer_append_byte(b, 0x80);
        return 1;
    case MADE_VARINT_LONG:
        put(b, UNKNOWN_FIELD << 3, 1);
        put(b, 1, INTEGER_MOST + 1 + (int)decide(k->d, 3));
        return 0;
    case MADE_KEY_LONG:
        put(b, UNKNOWN_FIELD << 3, KEY_MOST + 1 + (int)decide(k->d, INTEGER_MOST - KEY_MOST));
        buffer_append_byte(b, 1);
        return 0;
    case MADE_SIZE_LONG:
        put(b, UNKNOWN_FIELD << 3 | BYTES, 1);
        put(b, 1, KEY_MOST + 1 + (int)decide(k->d, INTEGER_MOST - KEY_MOST));
        buffer_append_byte(b, 1);
        return 0;
    case MADE_SIZE_OVER:
        put(b, UNKNOWN_FIELD << 3 | BYTES, 1);
        n = decide(k->d, 3);
        put(b, n == 2 ? UINT64_MAX : (n ? UINT32_MAX : 1) + decide(k->d, 100), 1);
        return 1;
    case MADE_FIXED_CUT:
        n = decide(k->d, 2);
        put(b, UNKNOWN_FIELD << 3 | (n ? FIXED64 : FIXED32), 1);
        for (n = decide(k->d, n ? 8 : 4); n; n--)
            buffer_append_byte(b, 7);
        return 1;
    case MADE_TYPE_UNKNOWN: put(b, (1 + decide(k->d, 20)) << 3 | (6 + decide(k->d, 2)), 1); return 0;
    case MADE_FIELD_ZERO: put_field(b, 0, decide(k->d, 2) ? BYTES : VARINT); return 0;
    case MADE_GROUP_OPEN: put(b, UNKNOWN_FIELD << 3 | GROUP, 1); return 1;
    case MADE_GROUP_CROSSED:
        put(b, UNKNOWN_FIELD << 3 | GROUP, 1);
        put(b, (UNKNOWN_FIELD + 1) << 3 | GROUP_END, 1);
        return 0;
    case MADE_GROUP_DEEP: put_groups(b, DEPTH_MOST + 1 + decide(k->d, 200)); return 0;
    case MADE_GROUP_DEEP_INSIDE: put_groups(b, DEPTH_MOST - decide(k->d, depths[k->fault_in])); return 0;
    default: put(b, (1 + decide(k->d, UNKNOWN_FIELD)) << 3 | GROUP_END, 1); return 0;
    }
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

void made_part_end(struct made_parts *m)
{
    m->ends[m->count++] = m->bytes.length;
}

static void add_unknown(struct maker *k, struct made_parts *m)
{
    static const uint64_t numbers[] = { UNKNOWN_FIELD, 19, 1000, FIELD_MAX };
    static const uint8_t types[] = { VARINT, FIXED64, BYTES, GROUP, FIXED32 };

    if (!k->unknown || !made_rarely(k, 4))
        return;
    if (made_rarely(k, 8))
        put_groups(&m->bytes, 1 + decide(k->d, 80));
    else
        put_field(&m->bytes, numbers[decide(k->d, 4)], types[decide(k->d, sizeof types)]);
    made_part_end(m);
}

void made_finish(struct maker *k, struct made_parts *m, enum made_message message, struct buffer *out)
{
    size_t order[MADE_PARTS];
    struct buffer fault = BUFFER_EMPTY;
    int last = 0;

    add_unknown(k, m);
    for (size_t i = 0; i < m->count; i++) {
        size_t other = k->shuffled ? decide(k->d, i + 1) : i;

        order[i] = i;
        if (message != MADE_SUMMARY) { /* its values keep their order */
            order[i] = order[other];
            order[other] = i;
        }
    }
    if (k->fault >= MADE_VARINT_CUT && k->fault <= MADE_GROUP_DEEP_INSIDE && k->fault_in == message) {
        if (k->fault == MADE_TYPE_OTHER)
            put_other_type(k, &fault, message);
        else
            last = put_no_field(k, &fault);
        last = last || decide(k->d, 2);
        k->fault = MADE_NO_FAULT;
    }
    if (fault.length && !last)
        buffer_append(out, fault.data, fault.length);
    for (size_t i = 0; i < m->count; i++) {
        size_t from = order[i] ? m->ends[order[i] - 1] : 0;

        if (m->ends[order[i]] > from)
            buffer_append(out, m->bytes.data + from, m->ends[order[i]] - from);
    }
    if (fault.length && last)
        buffer_append(out, fault.data, fault.length);
    buffer_release(&fault);
    buffer_release(&m->bytes);
    m->count = 0;
}

void made_inside(struct maker *k, struct made_parts *m, enum made_message message, uint64_t field, struct buffer *out)
{
    struct buffer inside = BUFFER_EMPTY;

    made_finish(k, m, message, &inside);
    made_bytes(k, out, field, inside.data, inside.length);
    buffer_release(&inside);
}
