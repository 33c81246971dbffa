#include "eventlog/format/wire.h"

#include "base/bytes.h"

#include <string.h>

enum {
    GROUP_DEPTH = 100, /* protobuf's limits, on nested groups, */
    KEY_MAX = 5,       /* and on the bytes of a key or a length: Python's and C++'s readers reject a longer one */
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Nearly all keys and lengths are one byte. 1: done, 0: not a varint of at most `most` bytes. */
static inline int take_varint(const uint8_t **p, const uint8_t *end, int most, uint64_t *v)
{
    int n = 1;

    if (*p < end && **p < 0x80)
        *v = **p;
    else if ((n = get_varint(*p, (size_t)(end - *p), v)) <= 0 || n > most)
        return 0;
    *p += n;
    return 1;
}

/* Reads a key; 1 done, 0 not a key. */
static inline int take_key(const uint8_t **p, const uint8_t *end, struct wire_field *f)
{
    uint64_t key;

    if (!take_varint(p, end, KEY_MAX, &key) || !(key >> 3) || key >> 3 > 0x1fffffff || (key & 7) > WIRE_FIXED32)
        return 0;
    f->number = key >> 3;
    f->type = (enum wire_type)(key & 7);
    return 1;
}

/* Reads what follows a key that opens or ends no group. */
static inline int take_content(const uint8_t **p, const uint8_t *end, struct wire_field *f)
{
    if (f->type == WIRE_FIXED64 || f->type == WIRE_FIXED32) {
        size_t size = f->type == WIRE_FIXED64 ? 8 : 4;

        if ((size_t)(end - *p) < size)
            return 0;
        f->integer = size == 8 ? get_le64(*p) : get_le32(*p);
        *p += size;
        return 1;
    }
    if (!take_varint(p, end, f->type == WIRE_BYTES ? KEY_MAX : VARINT_MAX, &f->integer))
        return 0;
    if (f->type == WIRE_BYTES) {
        if (f->integer > (uint64_t)(end - *p))
            return 0;
        f->bytes = *p;
        f->length = (size_t)f->integer;
        *p += f->length;
    }
    return 1;
}

static int skip_group(const uint8_t **p, const uint8_t *end, uint64_t number, int *most)
{
    uint64_t open[GROUP_DEPTH];
    struct wire_field f;
    int depth = *most = 1;

    open[0] = number;
    while (depth) {
        if (!take_key(p, end, &f))
            return 0;
        if (f.type == WIRE_GROUP_END) {
            if (f.number != open[--depth])
                return 0;
        } else if (f.type == WIRE_GROUP) {
            if (depth == GROUP_DEPTH)
                return 0;
            open[depth++] = f.number;
            *most = depth > *most ? depth : *most;
        } else if (!take_content(p, end, &f)) {
            return 0;
        }
    }
    return 1;
}

int wire_take(const uint8_t **p, const uint8_t *end, struct wire_field *f)
{
    const uint8_t *from = *p;
    int taken;

    f->bytes = *p; /* never NULL, even if there are none */
    f->length = 0;
    f->integer = 0;
    if ((taken = take_key(p, end, f)))
        taken = f->type == WIRE_GROUP_END ? -1
                : f->type == WIRE_GROUP   ? skip_group(p, end, f->number, &f->depth)
                                          : take_content(p, end, f);
    if (taken != 1)
        *p = from;
    return taken;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

void wire_release(struct wire *w)
{
    buffer_release(&w->bytes);
    w->bad_text = NULL;
}

int wire_check(const struct wire *w, const char *what, struct error *e)
{
    if (w->bad_text)
        return error_set(e, ERR_ARG,
                         "%s: a text is not UTF-8 at byte %zu (0x%02x); TensorBoard would give up on the file", what,
                         w->bad_at, (unsigned char)w->bad_text[w->bad_at]);
    return buffer_ok(&w->bytes) ? OK : error_memory(e, what, "for its bytes");
}

static void varint(struct wire *w, uint64_t v)
{
    char *p = buffer_reserve(&w->bytes, VARINT_MAX);

    if (p)
        w->bytes.length += (size_t)put_varint(p, v);
}

static void key(struct wire *w, int field, enum wire_type type)
{
    varint(w, (uint64_t)field << 3 | (uint64_t)type);
}

void wire_integer_always(struct wire *w, int field, int64_t v)
{
    key(w, field, WIRE_VARINT);
    varint(w, (uint64_t)v);
}

void wire_number_always(struct wire *w, int field, double v)
{
    uint8_t bytes[8];

    put_le64(bytes, double_bits(v));
    key(w, field, WIRE_FIXED64);
    buffer_append(&w->bytes, bytes, sizeof bytes);
}

void wire_bytes(struct wire *w, int field, const void *bytes, size_t n)
{
    key(w, field, WIRE_BYTES);
    varint(w, n);
    buffer_append(&w->bytes, bytes, n);
}

void wire_text_always(struct wire *w, int field, const char *text)
{
    size_t n = text ? strlen(text) : 0, bad;

    if (n && !w->bad_text && !utf8_valid(text, n, &bad)) {
        w->bad_text = text;
        w->bad_at = bad;
    }
    wire_bytes(w, field, text, n);
}

void wire_integer(struct wire *w, int field, int64_t v)
{
    if (v)
        wire_integer_always(w, field, v);
}

/* By bits: protobuf leaves out +0 only. */
void wire_number(struct wire *w, int field, double v)
{
    if (double_bits(v))
        wire_number_always(w, field, v);
}

void wire_text(struct wire *w, int field, const char *text)
{
    if (text && *text)
        wire_text_always(w, field, text);
}

size_t wire_begin(struct wire *w, int field)
{
    key(w, field, WIRE_BYTES);
    return w->bytes.length;
}

/* The length comes before the message but is known only now: move the message up by the bytes of the length. */
void wire_end(struct wire *w, size_t mark)
{
    size_t n = w->bytes.length - mark, head = (size_t)varint_size(n);
    char *end = buffer_reserve(&w->bytes, head);

    if (!end)
        return;
    memmove(w->bytes.data + mark + head, w->bytes.data + mark, n);
    put_varint(w->bytes.data + mark, n);
    w->bytes.length += head;
}
