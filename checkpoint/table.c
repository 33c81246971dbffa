/*
 * The table format (LevelDB's, as TensorFlow uses it); integers are little-endian, varints are LEB128.
 *
 *   [data block][trailer] ... [metaindex block][trailer] [index block][trailer] [footer, 48 bytes]
 *
 *   block    entries, then uint32 restart offsets, then uint32 their number
 *   entry    varint32 shared, varint32 unshared, varint32 value length, unshared key bytes, value; the key is the
 *            first `shared` bytes of the key before and the bytes given. At a restart `shared` is 0; so restarts are
 *            where a search by key may begin. A block of entries has one at least, the first entry.
 *   trailer  type (0 as is, 1 snappy), uint32 masked CRC-32C of the stored bytes and the type
 *   index    one entry a data block: a key >= all keys of the block and < all of the next; value: its handle
 *   handle   varint64 offset, varint64 size without the trailer
 *   footer   handle of the metaindex (always empty here), handle of the index, zeros to byte 40, magic
 *
 * The CRCs cover every byte but the footer's. The footer is held to be exactly what its two handles encode to, and
 * the handles to chain without gaps, so that changing any byte of a table is noticed.
 */
#include "checkpoint/table.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

/* ---- snappy block ------------------------------------------------------------------------------------------------ */

/*
 * A block is a varint32, the length of what it unpacks to, then elements. The low two bits of an element's first byte
 * are its kind, the upper six a number t; integers are little-endian:
 *
 *   0  literal  t + 1 bytes follow; t of 60 to 63: one to four bytes with that number follow first
 *   1  copy     4 + (t & 7) bytes, from (t >> 3) * 256 + one byte before
 *   2  copy     t + 1 bytes, from the number in two bytes before
 *   3  copy     t + 1 bytes, from the number in four bytes before
 *
 * A copy may begin less than its length before: then it repeats what it makes. Source: google/snappy,
 * format_description.txt.
 */

enum { LENGTH_BYTES_MAX = 5, NUMBER_IN_BYTES = 60 /* literals of this t and above have it in bytes of their own */ };

/* Returns how many bytes the length takes; 0: there is none. */
static size_t length_bytes(const void *block, size_t n, size_t *length)
{
    uint64_t value;
    const int used = get_varint(block, n, &value);

    if (used <= 0 || used > LENGTH_BYTES_MAX || value > UINT32_MAX)
        return 0;
    *length = (size_t)value;
    return (size_t)used;
}

int snappy_block_length(const void *block, size_t n, size_t *length)
{
    return length_bytes(block, n, length) > 0;
}

static size_t number_of(const uint8_t *bytes, size_t count)
{
    size_t number = 0;

    for (size_t i = 0; i < count; i++)
        number |= (size_t)bytes[i] << 8 * i;
    return number;
}

int snappy_block_unpack(const void *block, size_t n, void *out, size_t length)
{
    static const uint8_t offset_bytes[] = { 0, 1, 2, 4 }; /* by kind */
    const uint8_t *in = block;
    uint8_t *to = out;
    size_t said, at = length_bytes(block, n, &said), made = 0;

    if (!at || said != length)
        return 0;
    while (at < n) {
        const unsigned kind = in[at] & 3, t = in[at] >> 2;
        const size_t more = kind ? offset_bytes[kind] : t >= NUMBER_IN_BYTES ? t - NUMBER_IN_BYTES + 1 : 0;
        size_t number, count = t + 1;

        at++;
        if (more > n - at)
            return 0;
        number = number_of(in + at, more);
        at += more;
        if (kind == 0) {
            count = more ? number + 1 : count;
            if (count > n - at || count > length - made)
                return 0;
            memcpy(to + made, in + at, count);
            at += count;
        } else {
            if (kind == 1) {
                count = 4 + (t & 7);
                number += (size_t)(t >> 3) << 8;
            }
            if (number == 0 || number > made || count > length - made)
                return 0;
            for (size_t i = made; i < made + count; i++)
                to[i] = to[i - number];
        }
        made += count;
    }
    return made == length;
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

enum {
    TRAILER = 5,
    RESTART_INTERVAL = 16, /* data blocks; the index block restarts at each entry */
    BLOCK_SIZE = 262144,   /* as TensorFlow's bundle writer sets it */
    HANDLE_MAX = 2 * VARINT_MAX,
};

static const uint8_t magic[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

struct handle {
    uint64_t offset, size;
};

/* A block's bytes without its trailer, decompressed if it was compressed. */
struct block {
    const uint8_t *bytes;
    size_t size;       /* all of it */
    size_t limit;      /* of the entries: where the restart array begins */
    uint32_t restarts; /* how many it has */
    uint64_t offset;   /* in the file, for errors */
    void *memory;      /* to free; NULL while the bytes are the file's own */
};

/* Walks the entries of one block. The key is built in a buffer that may outlive the block. */
struct cursor {
    const struct block *block;
    size_t at;
    uint32_t restart; /* the next one's number */
    const uint8_t *value;
    size_t value_length;
};

struct reader {
    const char *name;
    const uint8_t *bytes;
    size_t n;
    table_visit *visit;
    void *context;
};

int table_footer_valid(const void *footer)
{
    return memcmp((const uint8_t *)footer + TABLE_FOOTER - sizeof magic, magic, sizeof magic) == 0;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Returns the bytes a handle takes, 0 when there is none. */
static size_t get_handle(const uint8_t *p, size_t n, struct handle *h)
{
    int first = get_varint(p, n, &h->offset), second;

    if (first <= 0)
        return 0;
    second = get_varint(p + first, n - (size_t)first, &h->size);
    return second <= 0 ? 0 : (size_t)first + (size_t)second;
}

static size_t put_handle(uint8_t *p, uint64_t offset, uint64_t size)
{
    int first = put_varint(p, offset);

    return (size_t)first + (size_t)put_varint(p + first, size);
}

static int uncompress(const struct reader *r, struct block *b, struct error *e)
{
    size_t size;

    if (!snappy_block_length(b->bytes, b->size, &size))
        return error_set(e, ERR_CORRUPT, "%s: bad compressed data in the block at byte %llu (no length)", r->name,
                         (unsigned long long)b->offset);
    /* Allocates only a size that the compressed bytes could produce. */
    if (size / SNAPPY_BLOCK_EXPANSION > b->size)
        return error_set(e, ERR_CORRUPT,
                         "%s: bad compressed data in the block at byte %llu (%zu bytes cannot become %zu)", r->name,
                         (unsigned long long)b->offset, b->size, size);
    if (!(b->memory = malloc(size ? size : 1)))
        return error_memory(e, r->name, "for a block of %zu bytes", size);
    if (!snappy_block_unpack(b->bytes, b->size, b->memory, size))
        return error_set(e, ERR_CORRUPT, "%s: bad compressed data in the block at byte %llu", r->name,
                         (unsigned long long)b->offset);
    b->bytes = b->memory;
    b->size = size;
    return OK;
}

/* Finds the restart array and checks it. */
static int check_restarts(const struct reader *r, struct block *b, struct error *e)
{
    uint32_t restarts, before = 0;

    if (b->size < 4)
        return error_set(e, ERR_CORRUPT, "%s: block at byte %llu has %zu bytes, too few for its restart count", r->name,
                         (unsigned long long)b->offset, b->size);
    restarts = get_le32(b->bytes + b->size - 4);
    if (restarts > (b->size - 4) / 4)
        return error_set(e, ERR_CORRUPT, "%s: block at byte %llu claims %u restarts in %zu bytes", r->name,
                         (unsigned long long)b->offset, restarts, b->size);
    if (!restarts && b->size > 4)
        return error_set(e, ERR_CORRUPT, "%s: block at byte %llu has no restarts, but %zu bytes", r->name,
                         (unsigned long long)b->offset, b->size);
    b->restarts = restarts;
    b->limit = b->size - 4 - 4 * (size_t)restarts;
    for (uint32_t i = 0; i < restarts; i++) {
        uint32_t restart = get_le32(b->bytes + b->limit + 4 * (size_t)i);

        if (i ? restart <= before || restart >= b->limit : restart != 0)
            return error_set(e, ERR_CORRUPT, "%s: block at byte %llu: restart %u is %u, which is not an entry", r->name,
                             (unsigned long long)b->offset, i, restart);
        before = restart;
    }
    return OK;
}

/* Opens the block of handle h, which must lie in [0, n - footer). Release with free(b->memory), also after errors. */
static int block_open(const struct reader *r, struct handle h, const char *what, struct block *b, struct error *e)
{
    uint64_t room = r->n - TABLE_FOOTER;
    const uint8_t *trailer;
    int rc;

    *b = (struct block){ .offset = h.offset };
    if (room < TRAILER || h.size > room - TRAILER || h.offset > room - TRAILER - h.size)
        return error_set(e, ERR_CORRUPT,
                         "%s: bad handle of the %s block: offset %llu, size %llu, but the file has %zu bytes", r->name,
                         what, (unsigned long long)h.offset, (unsigned long long)h.size, r->n);
    b->bytes = r->bytes + h.offset;
    b->size = (size_t)h.size;
    trailer = b->bytes + b->size;
    if (crc32c_mask(crc32c(b->bytes, b->size + 1)) != get_le32(trailer + 1))
        return error_set(e, ERR_CORRUPT, "%s: CRC mismatch in the %s block, bytes %llu to %llu", r->name, what,
                         (unsigned long long)h.offset, (unsigned long long)(h.offset + h.size));
    if (*trailer > 1)
        return error_set(e, ERR_CORRUPT, "%s: unknown block type %d at byte %llu", r->name, *trailer,
                         (unsigned long long)(h.offset + h.size));
    if (*trailer == 1 && (rc = uncompress(r, b, e)) != OK)
        return rc;
    return check_restarts(r, b, e);
}

static int malformed(const struct reader *r, const struct cursor *c, size_t at, const char *why, struct error *e)
{
    return error_set(e, ERR_CORRUPT, "%s: malformed entry at byte %zu of the block at byte %llu: %s", r->name, at,
                     (unsigned long long)c->block->offset, why);
}

/* 1: key and c->value are the next entry. 0: end of the block. `key` holds the previous key, which the entry must
 * follow; at the start of a block it is the last key of the block before (with `first` there is none). */
static int cursor_next(const struct reader *r, struct cursor *c, struct buffer *key, int first, struct error *e)
{
    const struct block *b = c->block;
    size_t at = c->at, start = at, order;
    size_t restart = c->restart < b->restarts ? get_le32(b->bytes + b->limit + 4 * (size_t)c->restart) : SIZE_MAX;
    uint64_t field[3]; /* shared, unshared, value length */

    if (restart < start)
        return malformed(r, c, restart, "a restart points here, but no entry begins here", e);
    if (at >= b->limit)
        return 0;
    for (int i = 0; i < 3; i++) {
        size_t left = b->limit - at;
        int n = get_varint(b->bytes + at, left, &field[i]);

        if (n <= 0 || n > 5 || field[i] > UINT32_MAX)
            return malformed(r, c, start, "its lengths are cut off", e);
        at += (size_t)n;
    }
    if (field[1] > b->limit - at || field[2] > b->limit - at - field[1])
        return malformed(r, c, start, "it is longer than its block", e);
    if (field[0] > (start ? key->length : 0))
        return malformed(r, c, start, "it shares more than the key before has", e);
    if (restart == start) {
        if (field[0])
            return malformed(r, c, start, "it shares bytes with the key before, but is a restart", e);
        c->restart++;
    }
    /* The previous key begins with the shared bytes, so only the bytes after them decide the order. */
    order = start ? (size_t)field[0] : 0;
    if (!first && bytes_compare(b->bytes + at, (size_t)field[1], buffer_text(key) + order, key->length - order) <= 0)
        return malformed(r, c, start, "its key does not come after the key before", e);
    key->length = order;
    buffer_append(key, b->bytes + at, (size_t)field[1]);
    if (!buffer_ok(key))
        return error_memory(e, r->name, "for a key");
    c->value = b->bytes + at + field[1];
    c->value_length = (size_t)field[2];
    c->at = at + (size_t)field[1] + (size_t)field[2];
    return 1;
}

static int compare_keys(const struct buffer *a, const struct buffer *b)
{
    return bytes_compare(a->data, a->length, b->data, b->length);
}

/* Visits the entries of one data block. key: the last key before the block; becomes the last key in it. separator: the
 * index key of the block before, which must be below this block's first key (NULL: there is none). */
static int read_data_block(const struct reader *r, struct handle h, struct buffer *key, int *any,
                           const struct buffer *separator, struct error *e)
{
    struct block b;
    struct cursor c = { .block = &b };
    int rc = block_open(r, h, "data", &b, e);

    while (rc == OK && (rc = cursor_next(r, &c, key, !*any, e)) == 1) {
        *any = 1;
        if (separator && compare_keys(key, separator) <= 0) {
            rc = error_set(e, ERR_CORRUPT, "%s: the index key before the block at byte %llu is not below its first key",
                           r->name, (unsigned long long)h.offset);
            break;
        }
        separator = NULL;
        rc = r->visit(r->context, key->data, key->length, c.value, c.value_length, e);
    }
    free(b.memory);
    return rc;
}

/* Reads the index block and all data blocks that it names; *end is set to the byte after the last one. */
static int read_index(const struct reader *r, const struct block *index, uint64_t *end, struct error *e)
{
    struct cursor c = { .block = index };
    struct buffer separator = BUFFER_EMPTY, before = BUFFER_EMPTY, key = BUFFER_EMPTY;
    int rc, first = 1, any = 0;

    while ((rc = cursor_next(r, &c, &separator, first, e)) == 1) {
        struct handle h;

        if (!get_handle(c.value, c.value_length, &h)) {
            rc = error_set(e, ERR_CORRUPT, "%s: bad handle of a data block in the index block at byte %llu", r->name,
                           (unsigned long long)index->offset);
            break;
        }
        if (h.offset != *end) {
            rc = error_set(
                e, ERR_CORRUPT,
                "%s: bad handle of a data block: it begins at byte %llu, but the one before ends at byte %llu", r->name,
                (unsigned long long)h.offset, (unsigned long long)*end);
            break;
        }
        if ((rc = read_data_block(r, h, &key, &any, first ? NULL : &before, e)) != OK)
            break;
        first = 0;
        if (any && compare_keys(&key, &separator) > 0) {
            rc = error_set(e, ERR_CORRUPT, "%s: the index key of the block at byte %llu is below its last key", r->name,
                           (unsigned long long)h.offset);
            break;
        }
        *end = h.offset + h.size + TRAILER; /* within the file: block_open has checked it */
        before.length = 0;
        buffer_append(&before, separator.data, separator.length);
        if (!buffer_ok(&before)) {
            rc = error_memory(e, r->name, "for a key");
            break;
        }
    }
    buffer_release(&separator);
    buffer_release(&before);
    buffer_release(&key);
    return rc;
}

/* The footer's two handles, which must have their only valid encoding and be followed by zeros. */
static int read_footer(const struct reader *r, struct handle *metaindex, struct handle *index, struct error *e)
{
    const uint8_t *footer = r->bytes + r->n - TABLE_FOOTER;
    uint8_t wanted[TABLE_FOOTER] = { 0 };
    size_t first, second;

    if (!table_footer_valid(footer))
        return error_set(e, ERR_CORRUPT, "%s: bad magic number at byte %zu: not a checkpoint index, or incomplete",
                         r->name, r->n - sizeof magic);
    first = get_handle(footer, TABLE_FOOTER - sizeof magic, metaindex);
    second = first ? get_handle(footer + first, TABLE_FOOTER - sizeof magic - first, index) : 0;
    if (!second)
        return error_set(e, ERR_CORRUPT, "%s: bad handle in the footer at byte %zu", r->name, r->n - TABLE_FOOTER);
    first = put_handle(wanted, metaindex->offset, metaindex->size);
    put_handle(wanted + first, index->offset, index->size);
    for (size_t i = 0; i < TABLE_FOOTER - sizeof magic; i++)
        if (footer[i] != wanted[i])
            return error_set(e, ERR_CORRUPT, "%s: damaged footer: byte %zu is 0x%02x where 0x%02x belongs", r->name,
                             r->n - TABLE_FOOTER + i, footer[i], wanted[i]);
    return OK;
}

int table_read(const char *name, const void *bytes, size_t n, table_visit *visit, void *context, struct error *e)
{
    struct reader r = { name, bytes, n, visit, context };
    struct handle metaindex, index;
    struct block meta = { .memory = NULL }, b = { .memory = NULL };
    uint64_t end = 0;
    int rc;

    if (n < TABLE_FOOTER)
        return error_set(e, ERR_CORRUPT, "%s: too short: %zu bytes, but an index has at least %d", name, n,
                         TABLE_FOOTER);
    if ((rc = read_footer(&r, &metaindex, &index, e)) != OK)
        return rc;
    if ((rc = block_open(&r, metaindex, "metaindex", &meta, e)) != OK ||
        (rc = block_open(&r, index, "index", &b, e)) != OK)
        goto out;
    if (meta.limit)
        rc = error_set(e, ERR_CORRUPT, "%s: bad handle of the metaindex block: the block at byte %llu is not empty",
                       name, (unsigned long long)metaindex.offset);
    else if (index.offset != metaindex.offset + metaindex.size + TRAILER ||
             index.offset + index.size + TRAILER != n - TABLE_FOOTER)
        rc = error_set(e, ERR_CORRUPT, "%s: bad handle: metaindex, index and footer do not follow each other", name);
    else if ((rc = read_index(&r, &b, &end, e)) == OK && end != metaindex.offset)
        rc = error_set(e, ERR_CORRUPT, "%s: bytes %llu to %llu belong to no block", name, (unsigned long long)end,
                       (unsigned long long)metaindex.offset);
out:
    free(meta.memory);
    free(b.memory);
    return rc;
}

/* ---- building ------------------------------------------------------------------------------------------------- */

void table_builder_init(struct table_builder *t, struct buffer *out)
{
    *t = (struct table_builder){ .out = out, .start = out->length };
}

void table_builder_release(struct table_builder *t)
{
    buffer_release(&t->block);
    buffer_release(&t->restarts);
    buffer_release(&t->index);
    buffer_release(&t->index_restarts);
    buffer_release(&t->last_key);
}

static void append_varint(struct buffer *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];

    buffer_append(b, bytes, (size_t)put_varint(bytes, v));
}

static void append_le32(struct buffer *b, size_t v)
{
    uint8_t bytes[4];

    put_le32(bytes, (uint32_t)v);
    buffer_append(b, bytes, sizeof bytes);
}

static void append_entry(struct buffer *b, size_t shared, const uint8_t *key, size_t key_length, const void *value,
                         size_t value_length)
{
    append_varint(b, shared);
    append_varint(b, key_length - shared);
    append_varint(b, value_length);
    buffer_append(b, key + shared, key_length - shared);
    buffer_append(b, value, value_length);
}

/* Appends the block and its trailer to the table; both buffers are empty afterwards. */
static void write_block(struct table_builder *t, struct buffer *entries, struct buffer *restarts, size_t *offset,
                        size_t *size)
{
    size_t begin = t->out->length;
    const char *stored;

    if (!restarts->length)
        append_le32(restarts, 0); /* the first entry is a restart, even if there are no entries */
    buffer_append(t->out, entries->data, entries->length);
    buffer_append(t->out, restarts->data, restarts->length);
    append_le32(t->out, restarts->length / 4);
    *offset = begin - t->start;
    *size = t->out->length - begin;
    buffer_append_byte(t->out, 0);
    stored = buffer_text(t->out) + begin;
    append_le32(t->out, buffer_ok(t->out) ? crc32c_mask(crc32c(stored, *size + 1)) : 0);
    if (!buffer_ok(entries) || !buffer_ok(restarts))
        t->out->failed = 1;
    buffer_clear(entries);
    buffer_clear(restarts);
}

static void close_data_block(struct table_builder *t)
{
    if (!t->block.length && buffer_ok(&t->block))
        return;
    write_block(t, &t->block, &t->restarts, &t->pending_offset, &t->pending_size);
    t->in_block = 0;
    t->pending = 1;
}

/* Writes the index entry of the closed block under a key between its last key and `next` (NULL: none follows). */
static void write_index_entry(struct table_builder *t, const uint8_t *next, size_t next_length)
{
    const uint8_t *last = (const uint8_t *)buffer_text(&t->last_key);
    size_t length = t->last_key.length, i = 0;
    struct buffer key = BUFFER_EMPTY;
    uint8_t handle[HANDLE_MAX];

    buffer_append(&key, last, length);
    if (next) {
        while (i < length && i < next_length && last[i] == next[i])
            i++;
        if (i < length && i < next_length && last[i] < 0xff && last[i] + 1 < next[i] && buffer_ok(&key)) {
            key.length = i + 1;
            key.data[i]++;
        }
    } else {
        while (i < length && last[i] == 0xff)
            i++;
        if (i < length && buffer_ok(&key)) {
            key.length = i + 1;
            key.data[i]++;
        }
    }
    append_le32(&t->index_restarts, t->index.length);
    append_entry(&t->index, 0, (const uint8_t *)buffer_text(&key), key.length, handle,
                 put_handle(handle, t->pending_offset, t->pending_size));
    if (!buffer_ok(&key))
        t->out->failed = 1;
    buffer_release(&key);
    t->pending = 0;
}

void table_builder_add(struct table_builder *t, const void *key, size_t key_length, const void *value,
                       size_t value_length)
{
    const uint8_t *k = key, *last;
    size_t shared = 0;

    /* An entry too large to share a block gets one to itself. */
    if (key_length + value_length >= 2 * (size_t)BLOCK_SIZE)
        close_data_block(t);
    if (t->pending)
        write_index_entry(t, k, key_length);
    last = (const uint8_t *)buffer_text(&t->last_key);
    if (t->in_block % RESTART_INTERVAL == 0)
        append_le32(&t->restarts, t->block.length);
    else
        while (shared < key_length && shared < t->last_key.length && k[shared] == last[shared])
            shared++;
    append_entry(&t->block, shared, k, key_length, value, value_length);
    t->in_block++;
    t->last_key.length = t->last_key.length < shared ? t->last_key.length : shared;
    buffer_append(&t->last_key, k + shared, key_length - shared);
    if (!buffer_ok(&t->last_key))
        t->out->failed = 1;
    if (t->block.length + t->restarts.length + 4 >= BLOCK_SIZE)
        close_data_block(t);
}

int table_builder_finish(struct table_builder *t, struct error *e)
{
    struct buffer none = BUFFER_EMPTY, no_restarts = BUFFER_EMPTY;
    size_t offset[2], size[2], n;
    uint8_t footer[TABLE_FOOTER] = { 0 };

    close_data_block(t);
    write_block(t, &none, &no_restarts, &offset[0], &size[0]);
    if (t->pending)
        write_index_entry(t, NULL, 0);
    write_block(t, &t->index, &t->index_restarts, &offset[1], &size[1]);
    buffer_release(&none);
    buffer_release(&no_restarts);
    n = put_handle(footer, offset[0], size[0]);
    put_handle(footer + n, offset[1], size[1]);
    memcpy(footer + TABLE_FOOTER - sizeof magic, magic, sizeof magic);
    buffer_append(t->out, footer, sizeof footer);
    return buffer_ok(t->out) ? OK : error_memory(e, NULL, "for the index of a checkpoint");
}
