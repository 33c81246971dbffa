#include "eventlog/format/record.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <string.h>

/*
 * HEADER: position == offset, a header is expected.
 * ZEROS_HEADER, ZEROS_DATA: a CRC field that does not match is 0, or ends with one, and everything after it up to
 *   position is 0. If the file ends there, it has not been written yet; the first byte that is not 0 makes it damage.
 * LOST: position advances byte by byte until 12 bytes are a header whose record fits in the file.
 */
enum { HEADER, ZEROS_HEADER, ZEROS_DATA, LOST };

static const uint64_t none = UINT64_MAX;

void record_parser_init(struct record_parser *p, uint64_t offset, uint64_t limit)
{
    memset(p, 0, sizeof *p);
    p->position = p->offset = offset;
    p->limit = limit && limit < RECORD_LENGTH_MAX ? limit : RECORD_LENGTH_MAX;
    p->state = HEADER;
    p->candidate = none;
}

void record_parser_again(struct record_parser *p)
{
    if (p->state == ZEROS_HEADER || p->state == ZEROS_DATA) {
        p->state = HEADER;
        p->position = p->offset;
    } else if (p->state == LOST && p->candidate != none) {
        p->position = p->candidate;
        p->candidate = none;
    }
}

int record_parser_inside(const struct record_parser *p, uint64_t file_size)
{
    return p->offset != file_size;
}

static enum record_result more(struct record *r, size_t need)
{
    r->need = need;
    return RECORD_MORE;
}

static void start_at(struct record_parser *p, uint64_t offset)
{
    p->state = HEADER;
    p->offset = p->position = offset;
    p->candidate = none;
    p->written = 0;
}

static enum record_result damage(struct record_parser *p, struct record *r, enum record_damage kind)
{
    r->offset = p->offset;
    r->data = NULL;
    r->length = 0;
    r->damage = kind;
    r->found = p->found;
    r->wanted = p->wanted;
    return RECORD_DAMAGE;
}

static enum record_result lose(struct record_parser *p, struct record *r, enum record_damage kind)
{
    p->state = LOST;
    p->candidate = none;
    p->position = p->offset + 1;
    return damage(p, r, kind);
}

static enum record_result pass_over(struct record_parser *p, struct record *r, enum record_damage kind)
{
    enum record_result result = damage(p, r, kind);

    p->lost += p->resume - p->offset;
    start_at(p, p->resume);
    return result;
}

/* position is in the zeros after a CRC field that is 0, or ends with one. */
static enum record_result past_zeros(struct record_parser *p, const uint8_t *bytes, size_t n, struct record *r)
{
    size_t i = 0;

    while (i < n && !bytes[i])
        i++;
    p->position += i;
    if (i == n)
        return more(r, 1);
    if (p->state == ZEROS_HEADER)
        return lose(p, r, RECORD_BAD_LENGTH_CRC);
    start_at(p, p->offset); /* once more from its header, for the data */
    p->written = 1;
    return more(r, (size_t)(p->resume - p->offset));
}

static int fits(uint64_t offset, uint64_t length, uint64_t file_size)
{
    return offset <= file_size && file_size - offset >= RECORD_OVERHEAD &&
           length <= file_size - offset - RECORD_OVERHEAD;
}

/* 1: a header was found and the parser is at it. */
static int find_header(struct record_parser *p, const uint8_t *bytes, size_t n, uint64_t file_size)
{
    size_t i;

    for (i = 0; n >= RECORD_HEADER && i <= n - RECORD_HEADER; i++) {
        uint64_t length, at = p->position + i;

        if (!record_header_right(bytes + i, &length))
            continue;
        if (fits(at, length, file_size)) {
            p->lost += at - p->offset;
            start_at(p, at);
            return 1;
        }
        if (p->candidate == none)
            p->candidate = at;
    }
    p->position += i;
    return 0;
}

/* The CRC that a header with this length has; most records are as long as the one before. */
static uint32_t length_crc(struct record_parser *p, const uint8_t *bytes, uint64_t length)
{
    if (length != p->last_length || !p->last_crc) {
        p->last_length = length;
        p->last_crc = crc32c_mask(crc32c(bytes, 8));
    }
    return p->last_crc;
}

/* A wrong CRC field that ends there: 1 if it may not have been written yet. Files are written page by page, and a page
 * may end in the field: then zeros come after it. */
static int may_come(uint32_t stored, uint64_t end, uint64_t file_size)
{
    return !stored || (!(stored >> 24) && end < file_size);
}

/* The header at bytes is whole. */
static enum record_result record_at(struct record_parser *p, const uint8_t *bytes, size_t n, uint64_t file_size,
                                    struct record *r)
{
    uint64_t length = get_le64(bytes);
    uint32_t stored;

    p->found = get_le32(bytes + 8);
    p->wanted = length_crc(p, bytes, length);
    if (p->found != p->wanted && may_come((uint32_t)p->found, p->offset + RECORD_HEADER, file_size)) {
        p->state = ZEROS_HEADER;
        p->position = p->offset + RECORD_HEADER;
        return past_zeros(p, bytes + RECORD_HEADER, n - RECORD_HEADER, r);
    }
    if (p->found != p->wanted)
        return lose(p, r, RECORD_BAD_LENGTH_CRC);
    if (length > RECORD_LENGTH_MAX) {
        p->found = length;
        p->wanted = RECORD_LENGTH_MAX;
        return lose(p, r, RECORD_TOO_LONG);
    }
    p->resume = p->offset + RECORD_OVERHEAD + length;
    if (length > p->limit && fits(p->offset, length, file_size)) {
        p->found = length;
        p->wanted = p->limit;
        return pass_over(p, r, RECORD_TOO_LONG);
    }
    if (n < RECORD_OVERHEAD + length)
        return more(r, (size_t)(RECORD_OVERHEAD + length));
    stored = get_le32(bytes + RECORD_HEADER + length);
    p->found = stored;
    p->wanted = crc32c_mask(crc32c(bytes + RECORD_HEADER, (size_t)length));
    if (stored != p->wanted && !p->written && may_come(stored, p->resume, file_size)) {
        size_t used = (size_t)(RECORD_OVERHEAD + length);

        p->state = ZEROS_DATA;
        p->position = p->resume;
        return past_zeros(p, bytes + used, n - used, r);
    }
    if (stored != p->wanted) {
        pass_over(p, r, RECORD_BAD_DATA_CRC);
    } else {
        r->offset = p->offset;
        start_at(p, p->resume);
    }
    r->data = bytes + RECORD_HEADER;
    r->length = (size_t)length;
    return stored == p->wanted ? RECORD_DATA : RECORD_DAMAGE;
}

enum record_result record_next(struct record_parser *p, const uint8_t *bytes, size_t n, uint64_t file_size,
                               struct record *r)
{
    if (p->state == ZEROS_HEADER || p->state == ZEROS_DATA)
        return past_zeros(p, bytes, n, r);
    if (p->state == LOST) {
        uint64_t before = p->position;

        if (!find_header(p, bytes, n, file_size))
            return more(r, RECORD_HEADER);
        bytes += p->position - before;
        n -= (size_t)(p->position - before);
    }
    return n < RECORD_HEADER ? more(r, RECORD_HEADER) : record_at(p, bytes, n, file_size, r);
}

int record_sound(struct record_parser *p, const uint8_t *bytes, size_t n, struct record *r)
{
    uint64_t length;

    if (p->state != HEADER || n < RECORD_OVERHEAD)
        return 0;
    length = get_le64(bytes);
    if (length > p->limit || length > n - RECORD_OVERHEAD || get_le32(bytes + 8) != length_crc(p, bytes, length) ||
        get_le32(bytes + RECORD_HEADER + length) != crc32c_mask(crc32c(bytes + RECORD_HEADER, (size_t)length)))
        return 0;
    r->offset = p->offset;
    r->data = bytes + RECORD_HEADER;
    r->length = (size_t)length;
    return 1;
}

void record_pass(struct record_parser *p, const struct record *r)
{
    start_at(p, r->offset + RECORD_OVERHEAD + r->length);
}
