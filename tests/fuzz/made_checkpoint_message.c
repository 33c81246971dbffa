/* Messages of protobuf, in all the ways in which they may be written. */
#include "base/bytes.h"
#include "tests/fuzz/made_checkpoint_parts.h"

#include <stdlib.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, TAG_BYTES = 5, UNKNOWN_FIRST = 8 };

void maker_le32(struct buffer *out, uint32_t v)
{
    uint8_t bytes[4];

    put_le32(bytes, v);
    buffer_append(out, bytes, sizeof bytes);
}

void maker_varint(struct maker *m, struct buffer *out, uint64_t v, size_t longest)
{
    size_t n = 1, more = m->long_varints && decide(&m->d, 4) == 1 ? (size_t)decide(&m->d, longest) : 0;

    for (; v >= 0x80; v >>= 7, n++)
        buffer_append_byte(out, (int)(v & 0x7f) | 0x80);
    if (n + more > longest)
        more = longest - n;
    buffer_append_byte(out, (int)v | (more ? 0x80 : 0));
    for (; more; more--)
        buffer_append_byte(out, more > 1 ? 0x80 : 0);
}

void message_init(struct message *g, struct maker *m)
{
    g->m = m; /* the fields are inited one by one: most messages have few */
    g->count = 0;
}

static struct buffer *add_field(struct message *g, uint32_t number, unsigned wire)
{
    struct buffer *bytes;

    if (g->count == MESSAGE_FIELDS_MAX)
        abort();
    bytes = &g->field[g->count].bytes;
    buffer_init(bytes);
    g->field[g->count++].number = number;
    maker_varint(g->m, bytes, (uint64_t)number << 3 | wire, TAG_BYTES);
    return bytes;
}

/* Of a field that is given twice the last one counts. */
static int given_twice(struct message *g)
{
    return g->m->odd_messages && decide(&g->m->d, 8) == 7;
}

void message_number_always(struct message *g, uint32_t number, int64_t v)
{
    if (given_twice(g))
        maker_varint(g->m, add_field(g, number, VARINT), (uint64_t)(v ^ 1), VARINT_MAX);
    maker_varint(g->m, add_field(g, number, VARINT), (uint64_t)v, VARINT_MAX);
}

void message_number(struct message *g, uint32_t number, int64_t v)
{
    if (v || (g->m->odd_messages && decide(&g->m->d, 4) == 3))
        message_number_always(g, number, v);
}

void message_fixed32(struct message *g, uint32_t number, uint32_t v)
{
    if (given_twice(g))
        maker_le32(add_field(g, number, FIXED32), ~v);
    maker_le32(add_field(g, number, FIXED32), v);
}

void message_bytes(struct message *g, uint32_t number, const void *bytes, size_t n)
{
    struct buffer *out = add_field(g, number, BYTES);

    maker_varint(g->m, out, n, TAG_BYTES);
    buffer_append(out, bytes, n);
}

static void add_unknown(struct message *g)
{
    struct decisions *d = &g->m->d;
    const uint32_t number = UNKNOWN_FIRST + (uint32_t)decide(d, decide(d, 2) ? 1 << 20 : 8);
    uint8_t bytes[40];

    decide_bytes(d, bytes, 8);
    switch (decide(d, 4)) {
    case 0: maker_varint(g->m, add_field(g, number, VARINT), get_le64(bytes), VARINT_MAX); break;
    case 1: buffer_append(add_field(g, number, FIXED64), bytes, 8); break;
    case 2: maker_le32(add_field(g, number, FIXED32), get_le32(bytes)); break;
    default:
        memset(bytes + 8, 0xff, sizeof bytes - 8);
        message_bytes(g, number, bytes, (size_t)decide(d, sizeof bytes + 1));
    }
}

void message_finish(struct message *g, struct buffer *out)
{
    const int odd = g->m->odd_messages && decide(&g->m->d, 2);

    for (uint64_t unknown = odd ? decide(&g->m->d, 3) : 0; unknown; unknown--)
        add_unknown(g);
    /* In any order; only fields of one number keep theirs. */
    while (g->count) {
        size_t at = odd ? (size_t)decide(&g->m->d, g->count) : 0;

        for (size_t i = 0; i < at; i++)
            if (g->field[i].number == g->field[at].number)
                at = i;
        buffer_append(out, buffer_text(&g->field[at].bytes), g->field[at].bytes.length);
        buffer_release(&g->field[at].bytes);
        memmove(&g->field[at], &g->field[at + 1], (--g->count - at) * sizeof g->field[0]);
    }
}
