/* The table of an index (specified in checkpoint/table.c), written without that file's builder. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/fuzz/made_checkpoint_parts.h"

#include <stdlib.h>

enum {
    BLOCKS_MAX = 48,
    LENGTH_BYTES = 5, /* a varint of 32 bits */
    FOOTER = 48,
    PADDED = 40,
    MAGIC = 8,
    WINDOW = 64, /* how far back copies are looked for */
    METAINDEX = -1,
    INDEX = -2,
    NONE = -3, /* numbers of blocks beside those of data */
};

struct table {
    struct maker *m;
    struct buffer *out;
    int target;                      /* the block that gets damage */
    struct made_row row[BLOCKS_MAX]; /* of the index block */
    size_t offset[BLOCKS_MAX], size[BLOCKS_MAX];
    const struct made_row *last[BLOCKS_MAX], *next[BLOCKS_MAX]; /* rows around the end of each block; NULL: none */
    size_t blocks;
};

/* ---- snappy ---------------------------------------------------------------------------------------------------- */

static void literal(struct maker *m, struct buffer *out, const char *bytes, size_t n)
{
    size_t least = n - 1 < 60 ? 0 : n - 1 < 0x100 ? 1 : 2, used = least;

    if (decide(&m->d, 8) == 7)
        used = least + (size_t)decide(&m->d, 5 - least);
    buffer_append_byte(out, (int)((used ? 59 + used : n - 1) << 2));
    for (size_t i = 0; i < used; i++)
        buffer_append_byte(out, (int)((n - 1) >> 8 * i & 0xff));
    buffer_append(out, bytes, n);
}

static void copy(struct maker *m, struct buffer *out, size_t offset, size_t n)
{
    uint64_t form = decide(&m->d, 3);

    if (form == 0 && n >= 4 && n <= 11 && offset < 2048) {
        buffer_append_byte(out, (int)(1 | (n - 4) << 2 | offset >> 8 << 5));
        buffer_append_byte(out, (int)(offset & 0xff));
        return;
    }
    buffer_append_byte(out, (int)((form == 1 ? 3 : 2) | (n - 1) << 2));
    for (size_t i = 0; i < (form == 1 ? 4u : 2u); i++)
        buffer_append_byte(out, (int)(offset >> 8 * i & 0xff));
}

/* The longest of the places shortly before `at` that go on as it does; its length. */
static size_t find_match(const char *bytes, size_t n, size_t at, size_t *offset)
{
    size_t best = 0;

    for (size_t from = at > WINDOW ? at - WINDOW : 0; from < at; from++) {
        size_t same = 0;

        while (at + same < n && same < 64 && bytes[from + same] == bytes[at + same])
            same++;
        if (same > best) {
            best = same;
            *offset = at - from;
        }
    }
    return best;
}

/* A copy from before the beginning, or of itself; how many bytes it pretends to make. */
static size_t put_wrong_copy(struct maker *m, struct buffer *out, size_t made)
{
    const enum made_damage kind = maker_wants(m, SNAPPY_OFFSET_BEFORE) ? SNAPPY_OFFSET_BEFORE : SNAPPY_OFFSET_ZERO;

    if (!maker_wants(m, kind))
        return 0;
    copy(m, out, kind == SNAPPY_OFFSET_BEFORE ? made + 1 + (size_t)decide(&m->d, 100) : 0, 4);
    maker_did(m, kind);
    return 4;
}

static void compress(struct maker *m, const struct buffer *raw, int damage, struct buffer *out)
{
    const size_t n = raw->length, wrong_at = damage ? (size_t)decide(&m->d, n) : 0;
    size_t length = n, offset = 0;
    struct buffer body = BUFFER_EMPTY;

    for (size_t at = 0, run; at < n; at += run) {
        if (damage && at >= wrong_at)
            length += put_wrong_copy(m, &body, at);
        if ((run = find_match(raw->data, n, at, &offset)) >= 4 && decide(&m->d, 4) != 3) {
            copy(m, &body, offset, run);
            continue;
        }
        run = 1 + (size_t)decide(&m->d, 100);
        run = run < n - at ? run : n - at;
        literal(m, &body, raw->data + at, run);
    }
    length += damage ? put_wrong_copy(m, &body, n) : 0;
    if (damage && maker_wants(m, SNAPPY_MORE)) {
        literal(m, &body, "more", 4);
        maker_did(m, SNAPPY_MORE);
    }
    if (damage && maker_wants(m, SNAPPY_LENGTH)) {
        length = decide(&m->d, 3) == 2 ? 0x7fffffff : decide(&m->d, 2) ? length - 1 : length + 1;
        maker_did(m, SNAPPY_LENGTH);
    }
    if (damage && maker_wants(m, SNAPPY_CUT)) {
        body.length--;
        maker_did(m, SNAPPY_CUT);
    }
    maker_varint(m, out, length, LENGTH_BYTES);
    buffer_append(out, body.data, body.length);
    buffer_release(&body);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

static int snappy_wanted(const struct maker *m)
{
    return maker_wants(m, SNAPPY_LENGTH) || maker_wants(m, SNAPPY_OFFSET_ZERO) ||
           maker_wants(m, SNAPPY_OFFSET_BEFORE) || maker_wants(m, SNAPPY_CUT) || maker_wants(m, SNAPPY_MORE);
}

static void flip_bits(struct maker *m, struct buffer *b, size_t begin)
{
    for (uint64_t n = 1 + decide(&m->d, 4); n && b->length > begin; n--) {
        size_t at = begin + (size_t)decide(&m->d, b->length - begin);

        b->data[at] = (char)(b->data[at] ^ 1 << decide(&m->d, 8));
    }
}

/* Appends the block with its trailer. */
static void store(struct table *t, const struct buffer *raw, int number, size_t *offset, size_t *size)
{
    struct maker *m = t->m;
    const int damage = number == t->target;
    int type = (damage && snappy_wanted(m)) || (m->snappy && decide(&m->d, 3) != 1);
    uint32_t crc, bit;

    *offset = t->out->length;
    if (type)
        compress(m, raw, damage, t->out);
    else
        buffer_append(t->out, raw->data, raw->length);
    *size = t->out->length - *offset;
    if (damage && maker_wants(m, BLOCK_TYPE)) {
        type = 2 + (int)decide(&m->d, 254);
        maker_did(m, BLOCK_TYPE);
    }
    if (damage && !type && maker_wants(m, BLOCK_TYPE_SNAPPY)) {
        type = 1;
        maker_did(m, BLOCK_TYPE_SNAPPY);
    }
    if (damage && maker_wants(m, BLOCK_NOISE)) {
        flip_bits(m, t->out, *offset);
        maker_did(m, BLOCK_NOISE);
    }
    buffer_append_byte(t->out, type);
    crc = crc32c_mask(crc32c(t->out->data + *offset, *size + 1));
    bit = (uint32_t)decide(&m->d, damage ? 32 : 0);
    if (damage && maker_wants(m, BLOCK_CRC)) {
        crc ^= 1u << bit;
        maker_did(m, BLOCK_CRC);
    }
    if (damage && maker_wants(m, BLOCK_BITS)) { /* one: an even number of them could be none */
        size_t at = *offset + (size_t)decide(&m->d, *size + 1);

        t->out->data[at] = (char)(t->out->data[at] ^ 1 << bit % 8);
        maker_did(m, BLOCK_BITS);
    }
    maker_le32(t->out, crc);
}

static size_t shared_with(const struct buffer *a, const struct buffer *b)
{
    size_t n = 0;

    while (n < a->length && n < b->length && a->data[n] == b->data[n])
        n++;
    return n;
}

/* One entry behind the key before (NULL: at a restart). */
static void put_entry(struct table *t, const struct made_row *row, const struct buffer *before, int number,
                      struct buffer *out)
{
    struct maker *m = t->m;
    const int damage = number == t->target;
    size_t shared = before ? shared_with(before, &row->key) : 0, value = row->value.length;
    uint64_t lengths[3];

    if (shared && decide(&m->d, 8) == 7)
        shared = 1 + (size_t)decide(&m->d, shared); /* less than it could, but some: RESTART_SHARED counts on it */
    lengths[0] = shared;
    lengths[1] = row->key.length - shared;
    lengths[2] = value;
    if (damage && maker_wants(m, KEY_SHARED)) {
        lengths[0] = (before ? before->length : 0) + 1 + decide(&m->d, 3);
        maker_did(m, KEY_SHARED);
    }
    if (damage && maker_wants(m, KEY_UNSHARED)) {
        lengths[1] = decide(&m->d, 2) ? UINT32_MAX - decide(&m->d, 16) : 1 << 20;
        maker_did(m, KEY_UNSHARED);
    }
    if (damage && maker_wants(m, VALUE_LENGTH)) {
        /* A message without its last byte, or with the first byte of what follows, is none. A handle may be. */
        lengths[2] = number < 0 || decide(&m->d, 2) ? 0x7fffffff + decide(&m->d, 16) : value + 1 - 2 * decide(&m->d, 2);
        maker_did(m, VALUE_LENGTH);
    }
    for (int i = 0; i < 3; i++)
        maker_varint(m, out, lengths[i], LENGTH_BYTES);
    buffer_append(out, buffer_text(&row->key) + shared, row->key.length - shared);
    buffer_append(out, buffer_text(&row->value), value);
}

static void put_restarts(struct table *t, struct buffer *raw, const struct buffer *restarts, int number)
{
    struct maker *m = t->m;
    const size_t limit = raw->length, count = restarts->length / 4;
    const int damage = number == t->target;
    uint32_t told = (uint32_t)count;

    buffer_append(raw, restarts->data, restarts->length);
    if (damage && maker_wants(m, RESTART_OFFSET)) {
        /* Entries are three bytes and more, so one byte off is no entry. */
        size_t which = (size_t)decide(&m->d, count);
        uint32_t right = get_le32(raw->data + limit + 4 * which);

        put_le32(raw->data + limit + 4 * which, decide(&m->d, 3) == 0 ? (uint32_t)(limit + decide(&m->d, 9) + !limit)
                                                : decide(&m->d, 2)    ? right + 1
                                                                      : right - 1);
        maker_did(m, RESTART_OFFSET);
    }
    if (damage && maker_wants(m, RESTART_COUNT)) {
        told = decide(&m->d, 2) ? told + 1 : (uint32_t)(raw->length + decide(&m->d, 1 << 16));
        maker_did(m, RESTART_COUNT);
    }
    if (damage && maker_wants(m, RESTART_NONE)) { /* so that no reader finds an entry */
        told = 0;
        maker_did(m, RESTART_NONE);
    }
    maker_le32(raw, told);
}

static void put_block(struct table *t, const struct made_row *rows, size_t count, int number, size_t *offset,
                      size_t *size)
{
    struct maker *m = t->m;
    struct buffer raw = BUFFER_EMPTY, restarts = BUFFER_EMPTY;
    const size_t interval = decide(&m->d, 2) ? 1 + (size_t)decide(&m->d, 20) : number == INDEX ? 1 : 16;
    const size_t victim = number == t->target ? (size_t)decide(&m->d, count) : 0;

    m->busy = 0;
    maker_le32(&restarts, 0);
    for (size_t i = 0, since = 0; i < count; i++, since++) {
        const struct buffer *before = i && since < interval ? &rows[i - 1].key : NULL;

        if (i && !before) {
            since = 0;
            maker_le32(&restarts, (uint32_t)raw.length);
            if (number == t->target && maker_wants(m, RESTART_SHARED) && shared_with(&rows[i - 1].key, &rows[i].key)) {
                before = &rows[i - 1].key; /* whoever begins to read here does not know it */
                maker_did(m, RESTART_SHARED);
            }
        }
        put_entry(t, &rows[i], before, i == victim ? number : NONE, &raw);
    }
    put_restarts(t, &raw, &restarts, number);
    store(t, &raw, number, offset, size);
    buffer_release(&raw);
    buffer_release(&restarts);
}

/* ---- index ----------------------------------------------------------------------------------------------------- */

/* A key not below a and below b (NULL: nothing follows). */
static void put_separator(struct maker *m, const struct buffer *a, const struct buffer *b, struct buffer *out)
{
    const size_t i = b ? shared_with(a, b) : 0;
    const uint64_t form = decide(&m->d, 3);

    if (form < 2 && !b && a->length && (uint8_t)a->data[0] < 0xff) {
        buffer_append_byte(out, (uint8_t)a->data[0] + 1);
    } else if (form < 2 && b && i < a->length && i < b->length && (uint8_t)a->data[i] + 1 < (uint8_t)b->data[i]) {
        buffer_append(out, a->data, i);
        buffer_append_byte(out, (uint8_t)a->data[i] + 1);
    } else {
        buffer_append(out, buffer_text(a), a->length);
        if (form == 1 && !(b && i == a->length)) /* behind a, and, unless b begins with a, below b */
            buffer_append_byte(out, 0);
    }
}

static void put_handle(struct maker *m, struct buffer *out, uint64_t offset, uint64_t size)
{
    buffer_clear(out);
    maker_varint(m, out, offset, VARINT_MAX);
    maker_varint(m, out, size, VARINT_MAX);
    if (decide(&m->d, 16) == 15)
        buffer_append(out, "after", (size_t)decide(&m->d, 6));
}

static void put_gap(struct table *t)
{
    struct maker *m = t->m;

    if (!maker_wants(m, HANDLE_GAP) || decide(&m->d, 3) == 2)
        return;
    buffer_append(t->out, "a gap", 1 + (size_t)decide(&m->d, 5));
    maker_did(m, HANDLE_GAP);
}

static void damage_handles(struct table *t)
{
    struct maker *m = t->m;
    const size_t which = (size_t)decide(&m->d, t->blocks);
    struct buffer *handle = &t->row[which].value;
    const uint64_t offset = t->offset[which], size = t->size[which], odd = decide(&m->d, 4);

    m->busy = 0;
    if (which && maker_wants(m, HANDLE_OVERLAP)) {
        put_handle(m, handle, t->offset[which - 1], t->size[which - 1]);
        maker_did(m, HANDLE_OVERLAP);
    }
    if (maker_wants(m, HANDLE_OVERFLOW)) {
        put_handle(m, handle, odd & 1 ? UINT64_MAX - decide(&m->d, 16) : offset,
                   odd == 1  ? size
                   : odd & 2 ? (uint64_t)1 << 63
                             : UINT64_MAX - decide(&m->d, 16));
        maker_did(m, HANDLE_OVERFLOW);
    }
    if (maker_wants(m, HANDLE_SIZE)) {
        put_handle(m, handle, offset, odd & 1 ? size + 1 : size - 1);
        maker_did(m, HANDLE_SIZE);
    }
    if (maker_wants(m, HANDLE_CUT)) {
        buffer_clear(handle);
        if (odd & 1)
            maker_varint(m, handle, offset, VARINT_MAX);
        maker_did(m, HANDLE_CUT);
    }
}

static void damage_separators(struct table *t)
{
    struct maker *m = t->m;
    const size_t which = (size_t)decide(&m->d, t->blocks);
    struct buffer *key = &t->row[which].key;
    const struct made_row *last = t->last[which], *next = t->next[which];

    m->busy = 0;
    if (last && last->key.length && maker_wants(m, SEPARATOR_LOW)) {
        buffer_clear(key);
        buffer_append(key, last->key.data, (size_t)decide(&m->d, last->key.length));
        maker_did(m, SEPARATOR_LOW);
    }
    if (last && next && maker_wants(m, SEPARATOR_HIGH)) {
        buffer_clear(key);
        buffer_append(key, buffer_text(&next->key), next->key.length);
        buffer_append(key, "higher", (size_t)decide(&m->d, 7));
        maker_did(m, SEPARATOR_HIGH);
    }
}

static void put_footer(struct table *t, size_t handle[4])
{
    struct maker *m = t->m;
    const size_t begin = t->out->length;
    uint64_t number[4];

    m->busy = 0;
    for (int i = 0; i < 4; i++)
        number[i] = handle[i];
    if (maker_wants(m, FOOTER_HANDLE)) {
        uint64_t *wrong = &number[decide(&m->d, 4)];

        *wrong = decide(&m->d, 3) ? *wrong + 1 - 2 * decide(&m->d, 2) : UINT64_MAX - decide(&m->d, 1 << 16);
        maker_did(m, FOOTER_HANDLE);
    }
    for (int i = 0; i < 4; i++) {
        uint8_t bytes[VARINT_MAX];
        int n = put_varint(bytes, number[i]);

        if (i == 3 && n < VARINT_MAX && maker_wants(m, FOOTER_LONG)) {
            bytes[n - 1] |= 0x80;
            bytes[n++] = 0;
            maker_did(m, FOOTER_LONG);
        }
        buffer_append(t->out, bytes, (size_t)n);
    }
    if (maker_wants(m, FOOTER_PADDING)) {
        buffer_append_byte(t->out, 1 + (int)decide(&m->d, 255));
        maker_did(m, FOOTER_PADDING);
    }
    while (t->out->length < begin + PADDED)
        buffer_append_byte(t->out, 0);
    buffer_append(t->out, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", MAGIC);
    if (maker_wants(m, FOOTER_MAGIC)) {
        char *byte = t->out->data + t->out->length - 1 - decide(&m->d, MAGIC);

        *byte = (char)(*byte ^ 1 << decide(&m->d, 8));
        maker_did(m, FOOTER_MAGIC);
    }
}

static void damage_file(struct table *t)
{
    struct maker *m = t->m;
    char more[16] = "more";

    m->busy = 0;
    if (maker_wants(m, INDEX_MORE)) {
        buffer_append(t->out, more, 1 + (size_t)decide(&m->d, sizeof more));
        maker_did(m, INDEX_MORE);
    }
    if (maker_wants(m, INDEX_CUT)) {
        t->out->length = (size_t)decide(&m->d, t->out->length);
        maker_did(m, INDEX_CUT);
    }
}

/* A block without entries whose separator is not below the first key there is. */
static void put_empty_first(struct table *t, size_t *begin)
{
    struct maker *m = t->m;

    m->busy = 0;
    if (!maker_wants(m, SEPARATOR_HIGH) || t->blocks == BLOCKS_MAX - 1 || decide(&m->d, 4) != 3)
        return;
    memmove(begin + 1, begin, (t->blocks++ + 1) * sizeof *begin); /* the first one is from 0 to 0 */
    buffer_append(&t->row[0].key, "\0first", (size_t)decide(&m->d, 7));
    maker_did(m, SEPARATOR_HIGH);
}

/* Where the data blocks begin, and how many there are. */
static size_t cut_blocks(struct maker *m, size_t count, size_t *begin)
{
    const uint64_t rows = decide(&m->d, 2) ? 1 + decide(&m->d, 12) : 0; /* of a block, about; 0: all */
    size_t blocks = 1;

    begin[0] = 0;
    for (size_t i = 1; i < count && blocks < BLOCKS_MAX - 1; i++)
        if (rows && decide(&m->d, rows) == 0)
            begin[blocks++] = i;
    return blocks;
}

void maker_table(struct maker *m, const struct made_row *rows, size_t count, struct buffer *out)
{
    static char key[] = "key";
    const struct made_row more = { { key, sizeof key - 1, sizeof key, 0 }, BUFFER_EMPTY };
    struct table t = { .m = m, .out = out };
    size_t begin[BLOCKS_MAX + 1] = { 0 }, handle[4];
    int filled;

    t.blocks = cut_blocks(m, count, begin);
    t.target = decide(&m->d, 4) ? (int)decide(&m->d, t.blocks) : decide(&m->d, 2) ? INDEX : METAINDEX;
    begin[t.blocks] = count;
    put_empty_first(&t, begin);
    for (size_t i = 0; i < t.blocks; i++) {
        const size_t end = begin[i + 1];

        put_gap(&t);
        put_block(&t, rows + begin[i], end - begin[i], (int)i, &t.offset[i], &t.size[i]);
        t.last[i] = end > begin[i] ? &rows[end - 1] : NULL;
        t.next[i] = end < count ? &rows[end] : NULL;
        if (t.last[i])
            put_separator(m, &t.last[i]->key, t.next[i] ? &t.next[i]->key : NULL, &t.row[i].key);
        put_handle(m, &t.row[i].value, t.offset[i], t.size[i]);
    }
    if (count && decide(&m->d, 16) == 15) { /* a block without entries, at the end */
        const size_t i = t.blocks++;

        put_block(&t, NULL, 0, (int)i, &t.offset[i], &t.size[i]);
        buffer_append(&t.row[i].key, buffer_text(&t.row[i - 1].key), t.row[i - 1].key.length);
        buffer_append_byte(&t.row[i].key, 'z');
        put_handle(m, &t.row[i].value, t.offset[i], t.size[i]);
    }
    damage_handles(&t);
    damage_separators(&t);
    m->busy = 0;
    put_gap(&t);
    filled = maker_wants(m, METAINDEX_FILLED);
    put_block(&t, &more, filled, METAINDEX, &handle[0], &handle[1]);
    m->busy = 0;
    if (filled)
        maker_did(m, METAINDEX_FILLED);
    put_gap(&t);
    put_block(&t, t.row, t.blocks, INDEX, &handle[2], &handle[3]);
    m->busy = 0;
    put_gap(&t);
    put_footer(&t, handle);
    damage_file(&t);
    for (size_t i = 0; i < t.blocks; i++) {
        buffer_release(&t.row[i].key);
        buffer_release(&t.row[i].value);
    }
}
