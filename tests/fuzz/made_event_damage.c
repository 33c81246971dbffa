/* Damage to the bytes of one record, or between two. Records that stand inside another one are left alone but where its
 * header is broken in place: made_events.c puts none into files that are damaged otherwise. */
#include "tests/fuzz/made_event_parts.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <string.h>

static void put_header(void *at, uint64_t length)
{
    uint8_t *to = at;

    put_le64(to, length);
    put_le32(to + 8, crc32c_mask(crc32c(to, 8)));
}

void made_append_record(struct buffer *to, const struct buffer *data)
{
    char head[MADE_HEADER], foot[MADE_FOOTER];

    put_header(head, data->length);
    put_le32(foot, crc32c_mask(crc32c(data->data, data->length)));
    buffer_append(to, head, sizeof head);
    if (data->length)
        buffer_append(to, data->data, data->length);
    buffer_append(to, foot, sizeof foot);
}

/* ---- what it costs --------------------------------------------------------------------------------------------- */

static size_t end_of(const struct made_record *r)
{
    return r->offset + r->size;
}

static void lose(struct made_record *r)
{
    r->given = r->counted = 0;
}

/* A record with a length that goes from one place to another: those that it covers in part do not come out. Returns
 * where the last one ends. */
static size_t cover(struct made_events *m, size_t from, size_t to)
{
    size_t end = to;

    for (size_t i = 0; i < m->record_count; i++) {
        struct made_record *r = &m->records[i];

        if (r->offset >= to || end_of(r) <= from)
            continue;
        lose(r);
        end = end_of(r) > end ? end_of(r) : end;
    }
    return end;
}

/* The header is wrong where it stands: readers look through the bytes behind it, and what is inside comes out. */
static void break_header(struct made_events *m, struct made_record *r)
{
    lose(r);
    r->whole = 0;
    for (size_t i = 0; i < m->record_count; i++)
        if (m->records[i].inside && m->records[i].offset > r->offset && m->records[i].offset < end_of(r))
            m->records[i].given = m->records[i].counted = 1;
}

static void told(struct made_events *m, const char *name, const char *findings, size_t from, size_t to)
{
    m->verdict = MADE_DAMAGED;
    m->damage = name;
    m->findings = findings;
    m->damage_from = from;
    m->damage_to = to;
}

/* ---- bytes ----------------------------------------------------------------------------------------------------- */

static uint8_t *bytes_at(struct made_events *m, size_t at)
{
    return (uint8_t *)m->file.data + at;
}

static void take_out(struct made_events *m, size_t at, size_t n)
{
    memmove(m->file.data + at, m->file.data + at + n, m->file.length - at - n);
    m->file.length -= n;
    for (size_t i = 0; i < m->record_count; i++)
        if (m->records[i].offset > at)
            m->records[i].offset -= n;
}

/* Before the record that begins there. */
static void put_in(struct made_events *m, size_t at, const void *bytes, size_t n)
{
    if (!buffer_reserve(&m->file, n))
        return;
    memmove(m->file.data + at + n, m->file.data + at, m->file.length - at);
    memcpy(m->file.data + at, bytes, n);
    m->file.length += n;
    for (size_t i = 0; i < m->record_count; i++)
        if (m->records[i].offset >= at)
            m->records[i].offset += n;
}

/* ---- lengths --------------------------------------------------------------------------------------------------- */

static void flip(struct made_events *m, struct decisions *d, struct made_record *r, size_t from, size_t n,
                 const char *name)
{
    size_t at = from + decide(d, n);

    *bytes_at(m, at) ^= (uint8_t)(1u << decide(d, 8));
    if (at < r->offset + MADE_HEADER) {
        break_header(m, r);
        told(m, name, "length_crc no_log ", r->offset, end_of(r));
        return;
    }
    lose(r);
    r->whole = 0;
    for (size_t i = 0; i < m->record_count; i++)
        if (m->records[i].inside && at >= m->records[i].offset && at < end_of(&m->records[i]))
            m->records[i].whole = 0;
    told(m, name, "data_crc ", r->offset, end_of(r));
}

static void over_file(struct made_events *m, struct decisions *d, struct made_record *r)
{
    put_header(bytes_at(m, r->offset), m->file.length - r->offset - MADE_HEADER - MADE_FOOTER + 1 + decide(d, 65536));
    r->whole = 0;
    cover(m, r->offset, m->file.length);
    told(m, "length_over_file", "partial ", r->offset, m->file.length);
}

static void over_limit(struct made_events *m, struct decisions *d, struct made_record *r)
{
    static const uint64_t lengths[] = { 0x80000000, (uint64_t)1 << 40, (uint64_t)1 << 62, UINT64_MAX };

    put_header(bytes_at(m, r->offset), lengths[decide(d, 4)]);
    break_header(m, r);
    told(m, "length_over_limit", "too_long ", r->offset, end_of(r));
}

static void more(struct made_events *m, struct decisions *d, struct made_record *r)
{
    size_t left = m->file.length - end_of(r), to;

    if (!left) {
        over_file(m, d, r);
        return;
    }
    to = end_of(r) + 1 + decide(d, left);
    put_header(bytes_at(m, r->offset), to - r->offset - MADE_HEADER - MADE_FOOTER);
    r->whole = 0;
    told(m, "length_more", "data_crc ", r->offset, cover(m, r->offset, to));
}

static void less(struct made_events *m, struct decisions *d, struct made_record *r)
{
    if (!r->data.length) {
        flip(m, d, r, r->offset + MADE_HEADER, MADE_FOOTER, "data_crc_flip");
        return;
    }
    put_header(bytes_at(m, r->offset), decide(d, r->data.length));
    lose(r);
    r->whole = 0;
    told(m, "length_less", "data_crc ", r->offset, end_of(r));
}

/* ---- bytes that are gone, or too many -------------------------------------------------------------------------- */

static void cut(struct made_events *m, struct decisions *d)
{
    size_t at = decide(d, m->file.length);

    m->damage = "cut_between";
    for (size_t i = 0; i < m->record_count; i++) {
        struct made_record *r = &m->records[i];

        if (end_of(r) <= at)
            continue;
        lose(r);
        r->whole = 0;
        if (r->offset < at)
            told(m, at - r->offset < MADE_HEADER ? "cut_header" : "cut", "partial ", r->offset, at);
    }
    m->file.length = at;
}

/* Where record i begins; with i as many as there are, the end. */
static size_t border(const struct made_events *m, size_t i)
{
    return i < m->record_count ? m->records[i].offset : m->file.length;
}

static void junk(struct made_events *m, struct decisions *d, size_t i)
{
    size_t at = border(m, i), n = 1 + decide(d, 40);
    uint8_t bytes[40];

    decide_bytes(d, bytes, n);
    for (size_t k = 0; k < n; k++)
        bytes[k] = bytes[k] ? bytes[k] : 0xa5; /* zeros are another damage */
    bytes[0] = 0xee;
    told(m, "junk", n < MADE_HEADER && at == m->file.length ? "partial " : "length_crc ", at, at + n);
    put_in(m, at, bytes, n);
}

static void zeros(struct made_events *m, struct decisions *d, size_t i)
{
    static const uint8_t bytes[40];
    size_t at = border(m, i), n = 1 + decide(d, sizeof bytes);
    int last = at == m->file.length;

    told(m, last ? n < MADE_HEADER ? "few_zeros_behind" : "zeros_behind" : "zeros", last ? "partial " : "length_crc ",
         at, at + n);
    put_in(m, at, bytes, n);
}

static void head_gone(struct made_events *m, struct decisions *d, struct made_record *r)
{
    size_t n = 1 + decide(d, r->size - 1);
    int few = r->size - n < MADE_HEADER && end_of(r) == m->file.length;

    take_out(m, r->offset, n);
    r->size -= n;
    lose(r);
    r->whole = 0;
    told(m, few ? "few_bytes_left" : "head_gone", few ? "partial " : "length_crc no_log ", r->offset, end_of(r));
}

/* The bytes where record r's data CRC is, as its header says. 1: they are right, though they are others'. */
static int crc_right(struct made_events *m, const struct made_record *r, size_t size)
{
    const uint8_t *data = bytes_at(m, r->offset + MADE_HEADER);
    size_t n = size - MADE_HEADER - MADE_FOOTER;

    return get_le32(data + n) == crc32c_mask(crc32c(data, n));
}

static void tail_gone(struct made_events *m, struct decisions *d, struct made_record *r)
{
    size_t size = r->size, left = size - 1 - decide(d, size - 1), claimed = r->offset + size, end;
    int last = end_of(r) == m->file.length;

    take_out(m, r->offset + left, size - left);
    r->size = left;
    if (left < MADE_HEADER && !last) {
        lose(r);
        r->whole = 0;
        told(m, "tail_gone", "length_crc no_log ", r->offset, end_of(r));
    } else if (claimed > m->file.length) { /* waited for */
        r->whole = 0;
        cover(m, r->offset, m->file.length);
        told(m, left < MADE_HEADER ? "cut_header" : "cut", "partial ", r->offset, m->file.length);
    } else {
        int right = crc_right(m, r, size); /* the next record's first byte is the one that is gone, 1 in 256 */

        end = cover(m, r->offset, claimed);
        r->given = r->counted = r->whole = right;
        told(m, "tail_gone", right ? "length_crc partial " : "data_crc ", right ? claimed : r->offset, end);
    }
}

/* The record's first bytes, then the whole record. */
static void doubled(struct made_events *m, struct decisions *d, struct made_record *r)
{
    size_t n = 1 + decide(d, r->size - 1), from = r->offset;
    struct buffer half = BUFFER_EMPTY;

    buffer_append(&half, bytes_at(m, from), n);
    put_in(m, from, half.data, n);
    buffer_release(&half);
    if (n < MADE_HEADER) {
        told(m, "doubled", "length_crc ", from, from + n);
        return;
    }
    lose(r);
    told(m, "doubled", "data_crc ", from, end_of(r));
    r->offset = from;
    if (crc_right(m, r, r->size)) { /* as above */
        r->given = r->counted = 1;
        told(m, "doubled", "length_crc partial ", end_of(r), end_of(r) + n);
    } else {
        r->offset += n;
    }
}

/* Bytes in the midst of the file became 0, as a page that was never written. */
static void zeroed(struct made_events *m, struct decisions *d, struct made_record *first)
{
    size_t from = first->offset + decide(d, first->size), to = from + 1 + decide(d, 100), last = m->file.length;
    int any = 0;

    while (last && !m->file.data[last - 1]) /* zeros up to the end would be waited for */
        last--;
    to = to < last ? to : last - 1;
    for (size_t i = 0; i < m->record_count; i++) {
        struct made_record *r = &m->records[i];
        size_t at = r->offset > from ? r->offset : from, end = end_of(r) < to ? end_of(r) : to;

        while (at < end && !m->file.data[at])
            at++;
        if (at >= end)
            continue;
        lose(r);
        r->whole = 0;
        if (!any++)
            told(m, "zeroed", at < r->offset + MADE_HEADER ? "length_crc no_log " : "data_crc ", r->offset, end_of(r));
        m->damage_to = end_of(r);
    }
    if (to > from)
        memset(m->file.data + from, 0, to - from);
}

/* Zeros from a place in the last record on, and maybe more of them: the file is longer already than what is written. A
 * CRC is there or not. */
static void unwritten(struct made_events *m, struct decisions *d)
{
    static const uint8_t bytes[40];
    struct made_record *r = &m->records[m->record_count - 1];
    size_t place = decide(d, r->size), end = end_of(r);

    if (place > 8 && place < MADE_HEADER)
        place = 8;
    if (place > r->size - MADE_FOOTER)
        place = r->size - MADE_FOOTER;
    memset(m->file.data + r->offset + place, 0, r->size - place);
    put_in(m, end, bytes, decide(d, sizeof bytes));
    lose(r);
    r->whole = 0;
    told(m, place ? "unwritten" : "zeros_behind", "partial ", r->offset, m->file.length);
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

/* Behind the beginning of the damage the header of a record stands where none was made: readers take it for one, and it
 * covers what follows. A fuzzer that sees the CRCs which are compared makes such bytes, chance does not. */
static int holds_stray_header(const struct made_events *m)
{
    const char *bytes = m->file.data;
    size_t next = 0;

    for (size_t at = m->damage_from + 1; at < m->damage_to && at + MADE_HEADER <= m->file.length; at++) {
        while (next < m->record_count && m->records[next].offset < at)
            next++;
        if ((next == m->record_count || m->records[next].offset != at) &&
            get_le32(bytes + at + 8) == crc32c_mask(crc32c(bytes + at, 8)))
            return 1;
    }
    return 0;
}

/* 1: it begins as files do that are unpacked before they are read, and not with the header of a record. */
static int begins_packed(const struct made_events *m)
{
    static const struct {
        const char *bytes;
        size_t n;
    } packed[] = {
        { "\x1f\x8b", 2 }, { "\x28\xb5\x2f\xfd", 4 }, { "\3757zXZ\0", 6 }, { "BZh", 3 }, { "PK\3\4", 4 },
    };
    const char *p = m->file.data;

    if (m->file.length >= MADE_HEADER && get_le32(p + 8) == crc32c_mask(crc32c(p, 8)))
        return 0;
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (m->file.length >= packed[i].n && !memcmp(p, packed[i].bytes, packed[i].n))
            return 1;
    return 0;
}

void made_damage(struct made_events *m, struct decisions *d, enum made_framing damage)
{
    size_t i = decide(d, m->record_count + (damage == MADE_JUNK || damage == MADE_ZEROS));
    struct made_record *r;

    while (i < m->record_count && m->records[i].inside)
        i--;
    r = &m->records[i];
    switch (damage) {
    case MADE_LENGTH_FLIP: flip(m, d, r, r->offset, 8, "length_flip"); break;
    case MADE_LENGTH_CRC_FLIP: flip(m, d, r, r->offset + 8, 4, "length_crc_flip"); break;
    case MADE_DATA_FLIP:
        if (r->data.length) {
            flip(m, d, r, r->offset + MADE_HEADER, r->data.length, "data_flip");
            break;
        } /* fall through */
    case MADE_DATA_CRC_FLIP: flip(m, d, r, end_of(r) - MADE_FOOTER, MADE_FOOTER, "data_crc_flip"); break;
    case MADE_LENGTH_OVER_FILE: over_file(m, d, r); break;
    case MADE_LENGTH_OVER_LIMIT: over_limit(m, d, r); break;
    case MADE_LENGTH_MORE: more(m, d, r); break;
    case MADE_LENGTH_LESS: less(m, d, r); break;
    case MADE_CUT: cut(m, d); break;
    case MADE_JUNK: junk(m, d, i); break;
    case MADE_HEAD_GONE: head_gone(m, d, r); break;
    case MADE_TAIL_GONE: tail_gone(m, d, r); break;
    case MADE_ZEROS: zeros(m, d, i); break;
    case MADE_ZEROED: zeroed(m, d, r); break;
    case MADE_UNWRITTEN: unwritten(m, d); break;
    default: doubled(m, d, r); break;
    }
    if (begins_packed(m) || holds_stray_header(m))
        m->verdict = MADE_EITHER;
}
