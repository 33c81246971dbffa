/* The tensors of a made checkpoint, as they are stored: plain, strings, variants, partitioned variables. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/fuzz/made_checkpoint_parts.h"

#include <stdlib.h>

enum { ELEMENTS_MAX = 512, STRINGS_MAX = 40, MANY_ELEMENTS = 20000 };

const unsigned char maker_element_size[MADE_TYPES] = {
    0, 4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};

/* ---- tensors --------------------------------------------------------------------------------------------------- */

int64_t maker_elements(const int64_t *shape, int rank)
{
    int64_t elements = 1;

    for (int d = 0; d < rank; d++)
        elements *= shape[d];
    return elements;
}

static void decide_shape(struct maker *m, struct made_tensor *t, int64_t most)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 5, 7, 17, 130, 0 };

    if (decide(&m->d, 256) == 255) {
        t->rank = 1;
        t->shape[0] = most == ELEMENTS_MAX ? (int64_t)decide(&m->d, MANY_ELEMENTS) : most;
        return;
    }
    t->rank = (int)decide(&m->d, MADE_RANK_MAX + 1);
    for (int d = 0; d < t->rank; d++) {
        t->shape[d] = sizes[decide(&m->d, sizeof sizes / sizeof *sizes)];
        if (maker_elements(t->shape, d + 1) > most)
            t->shape[d] = 1;
    }
}

/* Contents of all kinds of few decisions. */
static void fill(struct maker *m, struct buffer *out, size_t n, int type)
{
    const uint64_t seed = decide(&m->d, 256);
    struct decisions content = decisions_from_seed(seed);
    char *bytes = buffer_reserve(out, n);

    if (!bytes)
        abort();
    if (seed % 8 == 0)
        memset(bytes, (int)(seed / 8), n);
    else
        decide_bytes(&content, bytes, n);
    for (size_t i = 0; i < n && (type == 10 || type >= 29); i++) /* a bool, or a type of four bits or two */
        bytes[i] = (char)(bytes[i] & (type == 10 ? 1 : type == 31 || type == 32 ? 3 : 15));
    out->length += n;
}

/* As they are stored; returns the unmasked CRC of their entry. */
static uint32_t put_strings(struct maker *m, struct buffer *out, uint64_t count)
{
    const uint64_t wrong = count ? decide(&m->d, count) : 0;
    struct buffer strings = BUFFER_EMPTY;
    uint8_t bytes[4];
    uint32_t crc = 0, check;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = decide(&m->d, decide(&m->d, 16) == 15 ? 400 : 20);

        fill(m, &strings, (size_t)length, MADE_STRING);
        if (i == wrong && maker_wants(m, STRING_LENGTH)) {
            length += 1 + decide(&m->d, 2) * UINT32_MAX;
            maker_did(m, STRING_LENGTH);
        }
        maker_varint(m, out, length, VARINT_MAX);
        for (int half = 0; half < (length > UINT32_MAX ? 2 : 1); half++) {
            put_le32(bytes, (uint32_t)(length >> 32 * half));
            crc = crc32c_extend(crc, bytes, sizeof bytes);
        }
    }
    check = crc32c_mask(crc);
    if (maker_wants(m, STRING_CHECK)) {
        check ^= 1u << decide(&m->d, 32);
        maker_did(m, STRING_CHECK);
    }
    put_le32(bytes, check);
    crc = crc32c_extend(crc32c_extend(crc, bytes, sizeof bytes), buffer_text(&strings), strings.length);
    buffer_append(out, bytes, sizeof bytes);
    buffer_append(out, buffer_text(&strings), strings.length);
    buffer_release(&strings);
    return crc;
}

static uint32_t put_variants(struct maker *m, struct buffer *out, uint64_t count)
{
    uint8_t bytes[8];
    uint32_t crc = 0, check;

    for (uint64_t i = 0; i < count; i++) {
        struct buffer message = BUFFER_EMPTY;
        uint64_t length = decide(&m->d, 20);

        fill(m, &message, (size_t)length, MADE_VARIANT);
        if (i + 1 == count && maker_wants(m, VARIANT_LENGTH)) {
            length += 1 + decide(&m->d, 2) * UINT32_MAX;
            maker_did(m, VARIANT_LENGTH);
        }
        maker_varint(m, out, length, VARINT_MAX);
        put_le64(bytes, length);
        crc = crc32c_extend(crc32c_extend(crc, bytes, 8), buffer_text(&message), message.length);
        check = crc32c_mask(crc);
        if (maker_wants(m, VARIANT_CHECK)) {
            check ^= 1u << decide(&m->d, 32);
            maker_did(m, VARIANT_CHECK);
        }
        put_le32(bytes, check);
        crc = crc32c_extend(crc, bytes, 4);
        buffer_append(out, buffer_text(&message), message.length);
        buffer_append(out, bytes, 4);
        buffer_release(&message);
    }
    return crc;
}

static void decide_name(struct maker *m, size_t number, struct buffer *out)
{
    static const struct {
        const char *text;
        size_t length;
    } pieces[] = { { "conv1", 5 },    { "/", 1 },    { "weights", 7 }, { "ExponentialMovingAverage", 24 },
                   { "a", 1 },        { "\xff", 1 }, { "\0", 1 },      { "\xff\xff", 2 },
                   { "\xc3\xa9", 2 }, { "\n", 1 },   { " ", 1 },       { ".ATTRIBUTES/VARIABLE_VALUE", 26 },
                   { "\1", 1 },       { "b", 1 },    { "\x7f", 1 },    { "global_step", 11 } };

    for (uint64_t n = 1 + decide(&m->d, 4); n; n--) {
        const size_t i = (size_t)decide(&m->d, sizeof pieces / sizeof *pieces);

        if (out->length || *pieces[i].text) /* a NUL at the beginning marks a slice */
            buffer_append(out, pieces[i].text, pieces[i].length);
    }
    if (!out->length || decide(&m->d, 2))
        buffer_format(out, "%zu", number);
    for (size_t i = 0; i < m->out->count; i++) /* no name twice */
        if (!bytes_compare(m->out->tensor[i].name.data, m->out->tensor[i].name.length, out->data, out->length)) {
            buffer_format(out, "_%zu", number);
            i = (size_t)-1;
        }
}

/* ---- partitioned variables ------------------------------------------------------------------------------------- */

static void put_key_number(struct buffer *out, int64_t v)
{
    if (v >= -64 && v < 64) {
        buffer_append_byte(out, (int)(v & 0xff) ^ 0x80);
        return;
    }
    if (v < -8192 || v >= 8192)
        abort(); /* no dimension that is cut is so long */
    buffer_append_byte(out, (int)(v >> 8 & 0xff) ^ 0xc0);
    buffer_append_byte(out, (int)(v & 0xff));
}

static void put_slice_key(struct buffer *out, const struct buffer *name, int rank, const struct slice *slice)
{
    buffer_append_byte(out, 0);
    for (size_t i = 0; i < name->length; i++) {
        buffer_append_byte(out, (uint8_t)name->data[i]);
        if (name->data[i] == '\0')
            buffer_append_byte(out, 0xff);
        if ((uint8_t)name->data[i] == 0xff)
            buffer_append_byte(out, 0);
    }
    buffer_append(out, "\0\1\1", 3);
    buffer_append_byte(out, rank);
    for (int d = 0; d < rank; d++) {
        put_key_number(out, slice->start[d]);
        put_key_number(out, slice->length[d]);
    }
}

/* The bytes of a region of a tensor, element by element. */
static void cut_out(const struct made_tensor *t, const int64_t *start, const int64_t *length, struct buffer *out)
{
    const size_t each = maker_element_size[t->type];
    int64_t index[MADE_RANK_MAX] = { 0 };

    for (int64_t left = maker_elements(length, t->rank); left; left--) {
        size_t at = 0;

        for (int d = 0; d < t->rank; d++)
            at = at * (size_t)t->shape[d] + (size_t)(start[d] + index[d]);
        buffer_append(out, t->bytes.data + at * each, each);
        for (int d = t->rank - 1; d >= 0 && ++index[d] == length[d]; d--)
            index[d] = 0;
    }
}

static void add_slice(struct plan *p, const struct made_tensor *t, struct slice slice, const struct buffer *name)
{
    struct maker *m = &p->m;
    struct entry *e = &p->entry[p->count++];

    e->type = t->type;
    e->rank = t->rank;
    for (int d = 0; d < t->rank; d++)
        e->shape[d] = slice.length[d] < 0 ? t->shape[d] : slice.length[d];
    cut_out(t, slice.start, e->shape, &e->bytes);
    e->crc = crc32c(buffer_text(&e->bytes), e->bytes.length);
    put_slice_key(&e->key, name, t->rank, &slice);
    if (maker_wants(m, SLICE_TYPE) && (t->type < 4 || (t->type > 3 && maker_element_size[t->type] == 1))) {
        static const int other[4] = { 0, 3, 23, 22 };

        e->type = t->type < 4 ? other[t->type] : t->type == 4 ? 6 : 4;
        maker_did(m, SLICE_TYPE);
    }
    if (maker_wants(m, SLICE_SHAPE)) {
        e->shape[e->rank++] = 1;
        maker_did(m, SLICE_SHAPE);
    }
    e->damaged = m->busy;
}

/* Cuts dimension d of this size: where the parts begin, and the size behind the last one; how many. */
static int decide_cuts(struct maker *m, int64_t size, int most, int64_t *begin)
{
    int parts = 1;

    begin[0] = 0;
    while (parts < most && begin[parts - 1] + 1 < size && (parts == 1 || decide(&m->d, 2))) {
        begin[parts] = begin[parts - 1] + 1 + (int64_t)decide(&m->d, (uint64_t)(size - begin[parts - 1] - 1));
        parts++;
    }
    begin[parts] = size;
    return parts;
}

/* The slices of a grid in at most two dimensions. */
static size_t decide_slices(struct maker *m, const struct made_tensor *t, struct slice *slice)
{
    int64_t begin[2][4];
    int dimension[2], parts[2];
    size_t count = 0;

    for (int i = 0; i < 2; i++) {
        dimension[i] = (int)decide(&m->d, (uint64_t)t->rank);
        parts[i] = 1;
        if (i == 0 || (dimension[1] != dimension[0] && decide(&m->d, 2)))
            parts[i] = decide_cuts(m, t->shape[dimension[i]], 3, begin[i]);
    }
    for (int n = 0; n < parts[0] * parts[1]; n++) {
        struct slice *s = &slice[count++];

        for (int d = 0; d < t->rank; d++) {
            s->start[d] = 0;
            s->length[d] = decide(&m->d, 2) ? t->shape[d] : -1;
        }
        for (int i = 0; i < 2; i++) {
            const int k = i ? n / parts[0] : n % parts[0];

            if (parts[i] > 1) {
                s->start[dimension[i]] = begin[i][k];
                s->length[dimension[i]] = begin[i][k + 1] - begin[i][k];
            }
        }
    }
    if (count == 1) /* else TensorFlow takes it for no slice, and looks for bytes of the variable's own */
        slice->length[0] = t->shape[0];
    return count;
}

/* One of the slices that begins behind another one begins earlier, and takes of it. */
static void overlap_slices(struct maker *m, int rank, struct slice *slice, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < rank; d++)
            if (slice[i].start[d] && maker_wants(m, SLICES_OVERLAP)) {
                slice[i].start[d]--;
                slice[i].length[d]++;
                maker_did(m, SLICES_OVERLAP);
            }
}

static void add_sliced(struct plan *p, const struct made_tensor *t)
{
    struct maker *m = &p->m;
    struct buffer loose = BUFFER_EMPTY;
    struct slice *slice = calloc(MADE_SLICES_MAX, sizeof *slice);
    struct entry *full;
    size_t count, missing;

    if (!slice)
        abort();
    count = decide_slices(m, t, slice);
    overlap_slices(m, t->rank, slice, count);
    missing = count;
    if (count > 1 && maker_wants(m, SLICES_GAP)) {
        count--;
        missing = count;
        maker_did(m, SLICES_GAP);
    }
    if (maker_wants(m, SLICE_MISSING)) {
        missing = (size_t)decide(&m->d, count);
        maker_did(m, SLICE_MISSING);
    }
    if (maker_wants(m, SLICE_LOOSE)) {
        buffer_append(&loose, t->name.data, t->name.length);
        buffer_append_text(&loose, "/loose");
        add_slice(p, t, slice[0], &loose);
        buffer_release(&loose);
        maker_did(m, SLICE_LOOSE);
    }
    for (size_t i = 0; i < count; i++)
        if (i != missing)
            add_slice(p, t, slice[i], &t->name);
    full = &p->entry[p->count++];
    buffer_append(&full->key, t->name.data, t->name.length);
    full->type = t->type;
    full->rank = t->rank;
    memcpy(full->shape, t->shape, sizeof t->shape);
    full->shard = (int64_t)decide(&m->d, 4); /* means nothing */
    full->slice = slice;
    full->slices = count;
    full->damaged = m->busy;
}

static int slices_wanted(const struct maker *m)
{
    return maker_wants(m, SLICES_OVERLAP) || maker_wants(m, SLICES_GAP) || maker_wants(m, SLICE_MISSING) ||
           maker_wants(m, SLICE_LOOSE) || maker_wants(m, SLICE_TYPE) || maker_wants(m, SLICE_SHAPE);
}

static void add_plain(struct plan *p, struct made_tensor *t, int64_t elements)
{
    struct maker *m = &p->m;
    struct entry *e = &p->entry[p->count++];

    buffer_append(&e->key, t->name.data, t->name.length);
    e->type = t->type;
    e->rank = t->rank;
    memcpy(e->shape, t->shape, sizeof t->shape);
    if (maker_element_size[t->type]) {
        fill(m, &t->bytes, (size_t)elements * maker_element_size[t->type], t->type);
        e->crc = crc32c(buffer_text(&t->bytes), t->bytes.length);
    } else {
        e->crc = (t->type == MADE_STRING ? put_strings : put_variants)(m, &t->bytes, (uint64_t)elements);
    }
    buffer_append(&e->bytes, buffer_text(&t->bytes), t->bytes.length);
    e->damaged = m->busy;
}

void maker_tensor(struct plan *p, size_t number)
{
    struct maker *m = &p->m;
    struct made_tensor *t = &m->out->tensor[m->out->count];
    const uint64_t kind = decide(&m->d, 40);
    int sliced;
    int64_t elements;

    m->busy = 0;
    decide_name(m, number, &t->name);
    t->type = kind < 33 ? 1 + (int)kind : MADE_STRING;
    t->type = t->type == 20 ? MADE_VARIANT : t->type;
    if (maker_wants(m, STRING_LENGTH) || maker_wants(m, STRING_CHECK))
        t->type = MADE_STRING;
    else if (maker_wants(m, VARIANT_LENGTH) || maker_wants(m, VARIANT_CHECK))
        t->type = MADE_VARIANT;
    else if (slices_wanted(m) && !maker_element_size[t->type])
        t->type = 1;
    decide_shape(m, t, maker_element_size[t->type] ? ELEMENTS_MAX : STRINGS_MAX);
    if (slices_wanted(m) && maker_element_size[t->type] && (!t->rank || !maker_elements(t->shape, t->rank))) {
        t->rank = 2;
        t->shape[0] = 2 + (int64_t)decide(&m->d, 3);
        t->shape[1] = 1 + (int64_t)decide(&m->d, 100);
    }
    m->out->count++;
    elements = maker_elements(t->shape, t->rank);
    sliced = maker_element_size[t->type] && t->rank && elements && p->sliced < MADE_SLICED_MAX &&
             elements <= ELEMENTS_MAX && (slices_wanted(m) || decide(&m->d, 8) == 7);
    if (!sliced) {
        add_plain(p, t, elements);
        return;
    }
    fill(m, &t->bytes, (size_t)elements * maker_element_size[t->type], t->type);
    p->sliced++;
    add_sliced(p, t);
}
