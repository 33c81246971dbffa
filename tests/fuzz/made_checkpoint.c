/* A made checkpoint as a whole: tensors are placed, entries damaged and encoded, and then what is stored is damaged. */
#include "tests/fuzz/made_checkpoint.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/fuzz/made_checkpoint_parts.h"

#include <stdlib.h>

enum { REFERENCES = 100 /* DataType n + 100 is a reference to type n */ };

static const char *const damage_names[DAMAGES] = {
#define NAME_DAMAGE(damage, name) [damage] = name,
    MADE_DAMAGES(NAME_DAMAGE)
#undef NAME_DAMAGE
};

void maker_did(struct maker *m, enum made_damage damage)
{
    const int either = damage == BLOCK_NOISE         /* bits changed anywhere may mean something else that is sound */
                       || damage == ENTRY_NOISE      /* likewise */
                       || damage == ENTRY_REFERENCE; /* types of references: we read them as what they refer to */

    m->wanted &= ~((uint64_t)1 << damage);
    m->busy = 1;
    if (either)
        m->out->verdict = MADE_EITHER;
    else if (m->out->verdict == MADE_SOUND)
        m->out->verdict = MADE_DAMAGED;
    if (m->out->damage.length)
        buffer_append_byte(&m->out->damage, '+');
    buffer_append_text(&m->out->damage, damage_names[damage]);
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

/* Puts what is stored one after another into the shards, with or without bytes between. */
static void place(struct plan *p)
{
    struct maker *m = &p->m;
    const uint64_t alignment = (uint64_t)1 << decide(&m->d, 7), gaps = decide(&m->d, 3);

    for (size_t i = 0; i < p->count; i++) {
        struct entry *e = &p->entry[i];
        struct buffer *shard;

        if (e->slice)
            continue;
        e->shard = (int64_t)decide(&m->d, (uint64_t)m->out->shards);
        shard = &m->out->shard[e->shard];
        while (gaps == 1 && shard->length % alignment)
            buffer_append_byte(shard, 0);
        if (gaps == 2 && decide(&m->d, 4) == 3)
            buffer_append(shard, "nobody's", (size_t)decide(&m->d, 9));
        m->out->shard_there[e->shard] = 1;
        e->offset = (int64_t)shard->length;
        e->size = (int64_t)e->bytes.length;
        buffer_append(shard, buffer_text(&e->bytes), e->bytes.length);
    }
    for (int i = 0; i < m->out->shards; i++) {
        if (gaps == 2 && decide(&m->d, 4) == 3)
            buffer_append_text(&m->out->shard[i], "at the end");
        if (decide(&m->d, 2) == 0)
            m->out->shard_there[i] = 1; /* also one that nobody refers to */
    }
}

/* Another tensor of bytes that are one's already. */
static void overlap_tensors(struct plan *p)
{
    struct maker *m = &p->m;
    const size_t begin = (size_t)decide(&m->d, p->count);

    m->busy = 0;
    for (size_t i = 0; i < p->count && maker_wants(m, TENSORS_OVERLAP); i++) {
        const struct entry *of = &p->entry[(begin + i) % p->count];
        struct entry *e = &p->entry[p->count];

        if (of->slice || !of->size)
            continue;
        e->shard = of->shard;
        e->offset = of->offset + (int64_t)decide(&m->d, (uint64_t)of->size);
        e->size = of->offset + of->size - e->offset;
        buffer_append_text(&e->key, "zz/overlap");
        e->type = 4;
        e->rank = 1;
        e->shape[0] = e->size;
        e->crc = crc32c(m->out->shard[e->shard].data + e->offset, (size_t)e->size);
        e->damaged = 1;
        maker_did(m, TENSORS_OVERLAP);
        p->count++;
        return;
    }
}

/* Bytes of a tensor change, or its shard ends within it, or is not there. */
static void damage_data(struct plan *p)
{
    struct made_checkpoint *out = p->m.out;
    struct maker *m = &p->m;
    const size_t begin = (size_t)decide(&m->d, p->count);

    m->busy = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct entry *e = &p->entry[(begin + i) % p->count];
        struct buffer *shard;

        if (e->damaged || e->slice || !e->size)
            continue; /* what the entry says may be wrong */
        shard = &out->shard[e->shard];
        if (maker_wants(m, DATA_BITS)) {
            char *byte = shard->data + e->offset + decide(&m->d, (uint64_t)e->size);

            *byte = (char)(*byte ^ 1 << decide(&m->d, 8));
            maker_did(m, DATA_BITS);
        }
        if (maker_wants(m, DATA_CUT)) {
            shard->length = (size_t)(e->offset + (int64_t)decide(&m->d, (uint64_t)e->size));
            maker_did(m, DATA_CUT);
        }
        if (maker_wants(m, DATA_MISSING)) {
            out->shard_there[e->shard] = 0;
            maker_did(m, DATA_MISSING);
        }
    }
}

/* ---- damage to entries ----------------------------------------------------------------------------------------- */

/* Is what the entry now points to still what it had stored? Then nobody can tell the difference. */
static int same_bytes(const struct plan *p, const struct entry *e, int64_t shard, int64_t offset)
{
    const struct buffer *of = &p->m.out->shard[shard];

    return offset >= 0 && (uint64_t)offset + e->bytes.length <= of->length &&
           (!e->bytes.length || memcmp(of->data + offset, e->bytes.data, e->bytes.length) == 0);
}

static void damage_place(struct plan *p, struct entry *e)
{
    struct maker *m = &p->m;
    const int64_t length = (int64_t)m->out->shard[e->shard].length;
    int64_t wrong;

    if (maker_wants(m, ENTRY_OFFSET)) {
        switch (decide(&m->d, 5)) {
        case 0: wrong = -1 - (int64_t)decide(&m->d, 1 << 20); break;
        case 1: wrong = INT64_MAX - (int64_t)decide(&m->d, 64); break;
        case 2: wrong = length - e->size + 1 + (int64_t)decide(&m->d, 16); break;
        case 3: wrong = e->offset + 1 + (int64_t)decide(&m->d, 8); break;
        default: wrong = e->offset - 1 - (int64_t)decide(&m->d, 8);
        }
        if (!same_bytes(p, e, e->shard, wrong)) {
            e->offset = wrong;
            maker_did(m, ENTRY_OFFSET);
        }
    }
    if (maker_wants(m, ENTRY_SHARD)) {
        switch (decide(&m->d, 4)) {
        case 0: wrong = -1 - (int64_t)decide(&m->d, 100); break;
        case 1: wrong = INT32_MAX - (int64_t)decide(&m->d, 2); break;
        case 2: wrong = m->out->shards; break;
        default: wrong = (int64_t)decide(&m->d, (uint64_t)m->out->shards);
        }
        if (wrong < 0 || wrong >= m->out->shards || !same_bytes(p, e, wrong, e->offset)) {
            e->shard = wrong;
            maker_did(m, ENTRY_SHARD);
        }
    }
    if (maker_wants(m, ENTRY_SIZE)) {
        switch (decide(&m->d, 4)) {
        case 0: e->size = -1 - (int64_t)decide(&m->d, 1 << 20); break;
        case 1: e->size = INT64_MAX - (int64_t)decide(&m->d, 64); break;
        case 2: e->size += 1 + (int64_t)decide(&m->d, 4); break;
        default: e->size -= 1 + (int64_t)decide(&m->d, 4);
        }
        maker_did(m, ENTRY_SIZE);
    }
    if (maker_wants(m, ENTRY_CRC)) {
        e->crc ^= 1u << decide(&m->d, 32);
        maker_did(m, ENTRY_CRC);
    }
}

/* One that takes another number of bytes, or that no checkpoint holds. */
static void damage_type(struct plan *p, struct entry *e)
{
    static const int never[] = { 0, -1, 20, 34, 99, 201, INT32_MAX, INT32_MIN };
    struct maker *m = &p->m;
    int wrong = decide(&m->d, 2) ? never[decide(&m->d, sizeof never / sizeof *never)]
                                 : 1 + (int)decide(&m->d, MADE_TYPES - 1);
    const int fixed = e->type < MADE_TYPES ? maker_element_size[e->type] : 0;

    if (wrong > 0 && wrong < MADE_TYPES && (maker_element_size[wrong] == fixed || (!e->slice && !e->size)))
        wrong = 0;
    e->type = wrong;
    maker_did(m, ENTRY_TYPE);
}

static void damage_shape(struct plan *p, struct entry *e)
{
    struct maker *m = &p->m;
    const int d = (int)decide(&m->d, (uint64_t)e->rank);
    const int64_t elements = maker_elements(e->shape, e->rank);

    switch (decide(&m->d, 4)) {
    case 0: e->shape[d] = -1 - (int64_t)decide(&m->d, 1 << 20); break;
    case 1: /* more elements than there are numbers */
        if (!elements)
            return;
        e->shape[d] = INT64_MAX;
        e->shape[e->rank++] = 3;
        break;
    case 2:
        if (!elements && (e->rank > 1 || e->shape[d]))
            return; /* still none */
        e->shape[d]++;
        break;
    default:
        if (!elements)
            return;
        e->shape[d]--;
    }
    maker_did(m, ENTRY_SHAPE);
}

static void damage_entry(struct plan *p, struct entry *e)
{
    struct maker *m = &p->m;

    m->busy = e->damaged;
    if (!e->slice)
        damage_place(p, e);
    if (maker_wants(m, ENTRY_TYPE))
        damage_type(p, e);
    if (e->rank && e->rank <= MADE_RANK_MAX && maker_wants(m, ENTRY_SHAPE))
        damage_shape(p, e);
    if (maker_wants(m, ENTRY_RANK)) {
        e->unknown_rank = 1;
        maker_did(m, ENTRY_RANK);
    }
    if (e->rank && maker_wants(m, ENTRY_NAME)) {
        e->bad_name = 1;
        maker_did(m, ENTRY_NAME);
    }
    if (maker_wants(m, ENTRY_REFERENCE)) {
        e->type += REFERENCES;
        maker_did(m, ENTRY_REFERENCE);
    }
    e->damaged = m->busy;
}

static void damage_entries(struct plan *p)
{
    const size_t begin = (size_t)decide(&p->m.d, p->count);

    for (size_t i = 0; i < p->count; i++)
        damage_entry(p, &p->entry[(begin + i) % p->count]);
}

/* ---- encoding -------------------------------------------------------------------------------------------------- */

static void encode_shape(struct maker *m, const struct entry *e, struct buffer *out)
{
    struct message shape, dimension;
    struct buffer bytes = BUFFER_EMPTY;

    message_init(&shape, m);
    for (int d = 0; d < e->rank; d++) {
        message_init(&dimension, m);
        message_number(&dimension, 1, e->shape[d]);
        if (e->bad_name && d == 0)
            message_bytes(&dimension, 2, "\xff\xfe", 2); /* text, so it must be UTF-8 */
        else if (m->odd_messages && decide(&m->d, 8) == 7)
            message_bytes(&dimension, 2, "rows \xc3\xa9", 7);
        message_finish(&dimension, &bytes);
        message_bytes(&shape, 2, buffer_text(&bytes), bytes.length);
        buffer_clear(&bytes);
    }
    message_number(&shape, 3, e->unknown_rank);
    message_finish(&shape, out);
    buffer_release(&bytes);
}

static void encode_slice(struct maker *m, const struct slice *slice, int rank, struct buffer *out)
{
    struct message whole, extent;
    struct buffer bytes = BUFFER_EMPTY;

    message_init(&whole, m);
    for (int d = 0; d < rank; d++) {
        message_init(&extent, m);
        message_number(&extent, 1, slice->start[d]);
        if (slice->length[d] >= 0)
            message_number_always(&extent, 2, slice->length[d]);
        message_finish(&extent, &bytes);
        message_bytes(&whole, 1, buffer_text(&bytes), bytes.length);
        buffer_clear(&bytes);
    }
    message_finish(&whole, out);
    buffer_release(&bytes);
}

static void encode_entry(struct maker *m, const struct entry *e, struct buffer *out)
{
    struct message g;
    struct buffer bytes = BUFFER_EMPTY;

    message_init(&g, m);
    message_number(&g, 1, e->type);
    encode_shape(m, e, &bytes);
    if (bytes.length > 1 && m->odd_messages && decide(&m->d, 4) == 3) /* a message in two parts is put together */
        message_bytes(&g, 2, "", 0);
    if (bytes.length || !m->odd_messages || decide(&m->d, 4) != 3)
        message_bytes(&g, 2, buffer_text(&bytes), bytes.length);
    message_number(&g, 3, e->shard);
    message_number(&g, 4, e->offset);
    message_number(&g, 5, e->size);
    if (!e->slice)
        message_fixed32(&g, 6, crc32c_mask(e->crc));
    for (size_t i = 0; i < e->slices; i++) {
        buffer_clear(&bytes);
        encode_slice(m, &e->slice[i], e->rank, &bytes);
        message_bytes(&g, 7, buffer_text(&bytes), bytes.length);
    }
    message_finish(&g, out);
    buffer_release(&bytes);
}

static void encode_version(struct maker *m, struct buffer *out)
{
    struct message version;
    int64_t producer = decide(&m->d, 4) ? 1 : (int64_t)decide(&m->d, 3), least = (int64_t)decide(&m->d, 2);
    struct buffer packed = BUFFER_EMPTY;

    message_init(&version, m);
    if (maker_wants(m, HEADER_PRODUCER)) {
        producer = -1 - (int64_t)decide(&m->d, 100);
        maker_did(m, HEADER_PRODUCER);
    }
    if (maker_wants(m, HEADER_MIN_CONSUMER)) {
        least = decide(&m->d, 2) ? 2 : INT32_MAX;
        maker_did(m, HEADER_MIN_CONSUMER);
    }
    message_number(&version, 1, producer);
    message_number(&version, 2, least);
    for (uint64_t bad = decide(&m->d, 4); bad == 2 || bad == 3; bad++)
        message_number_always(&version, 3, (int64_t)bad); /* as one field each */
    maker_varint(m, &packed, 7, VARINT_MAX);
    if (maker_wants(m, HEADER_BAD_CONSUMER)) {
        maker_varint(m, &packed, 1, VARINT_MAX);
        maker_did(m, HEADER_BAD_CONSUMER);
        message_bytes(&version, 3, packed.data, packed.length);
    } else if (decide(&m->d, 4) == 3) { /* as one field of all */
        message_bytes(&version, 3, packed.data, packed.length);
    }
    message_finish(&version, out);
    buffer_release(&packed);
}

static void encode_header(struct plan *p, struct buffer *out)
{
    struct maker *m = &p->m;
    struct message g;
    struct buffer version = BUFFER_EMPTY;
    int64_t shards = m->out->shards;
    int stored = 0;

    message_init(&g, m);
    m->busy = 0;
    for (size_t i = 0; i < p->count; i++)
        stored |= !p->entry[i].slice;
    if (maker_wants(m, HEADER_SHARDS)) { /* part of the names of the shards, if there are any */
        shards = stored && decide(&m->d, 2) ? shards + 1 + (int64_t)decide(&m->d, 1000) : -(int64_t)decide(&m->d, 3);
        maker_did(m, HEADER_SHARDS);
    }
    message_number(&g, 1, shards);
    if (maker_wants(m, HEADER_ENDIANNESS)) {
        message_number_always(&g, 2, 1);
        maker_did(m, HEADER_ENDIANNESS);
    } else {
        message_number(&g, 2, 0);
    }
    if (maker_wants(m, HEADER_PRODUCER) || maker_wants(m, HEADER_MIN_CONSUMER) || maker_wants(m, HEADER_BAD_CONSUMER) ||
        decide(&m->d, 8) != 7) {
        encode_version(m, &version);
        message_bytes(&g, 3, buffer_text(&version), version.length);
        buffer_release(&version);
    }
    message_finish(&g, out);
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const struct made_row *x = a, *y = b;

    return bytes_compare(buffer_text(&x->key), x->key.length, buffer_text(&y->key), y->key.length);
}

static int compare_tensors(const void *a, const void *b)
{
    const struct made_tensor *x = a, *y = b;

    return bytes_compare(x->name.data, x->name.length, y->name.data, y->name.length);
}

/* What is wrong with one encoded entry, which is no other entry's damage too. */
static void damage_value(struct maker *m, struct buffer *value)
{
    if (maker_wants(m, ENTRY_CUT)) {
        value->length--; /* no message is whole without its last byte */
        maker_did(m, ENTRY_CUT);
    }
    if (maker_wants(m, ENTRY_NOISE)) {
        char *byte = value->data + decide(&m->d, value->length);

        *byte = (char)(*byte ^ (1 + (int)decide(&m->d, 255)));
        maker_did(m, ENTRY_NOISE);
    }
}

static void make_index(struct plan *p)
{
    struct maker *m = &p->m;
    struct made_row row[MADE_ENTRIES_MAX + 2] = { { BUFFER_EMPTY, BUFFER_EMPTY } };
    size_t first = 0, count = 1, at;

    encode_header(p, &row[0].value);
    for (size_t i = 0; i < p->count; i++, count++) {
        row[count].key = p->entry[i].key;
        encode_entry(m, &p->entry[i], &row[count].value);
        m->busy = p->entry[i].damaged;
        damage_value(m, &row[count].value);
    }
    qsort(row, count, sizeof *row, compare_rows);
    m->busy = 0;
    if (maker_wants(m, HEADER_MISSING)) {
        first = 1;
        maker_did(m, HEADER_MISSING);
    }
    at = first + (count > first + 1 ? (size_t)decide(&m->d, count - first - 1) : 0);
    m->busy = 0;
    if (at + 1 < count && maker_wants(m, KEYS_ORDER)) {
        const struct made_row row_at = row[at];

        row[at] = row[at + 1];
        row[at + 1] = row_at;
        maker_did(m, KEYS_ORDER);
    }
    m->busy = 0;
    if (at < count && maker_wants(m, KEYS_DOUBLED)) {
        memmove(&row[at + 1], &row[at], (count++ - at) * sizeof *row);
        maker_did(m, KEYS_DOUBLED);
    }
    maker_table(m, row + first, count - first, &m->out->index);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || row[i].value.data != row[i + 1].value.data) /* the same row twice */
            buffer_release(&row[i].value);
}

void made_checkpoint_init(struct made_checkpoint *c, struct decisions d)
{
    struct plan *p = calloc(1, sizeof *p);
    uint64_t damages, tensors;

    if (!p)
        abort();
    memset(c, 0, sizeof *c);
    p->m = (struct maker){ .d = d, .out = c };
    damages = decide(&p->m.d, 8);
    for (damages = damages < 4 ? 0 : damages < 7 ? 1 : 2 + decide(&p->m.d, 2); damages; damages--)
        p->m.wanted |= (uint64_t)1 << decide(&p->m.d, DAMAGES);
    p->m.long_varints = decide(&p->m.d, 4) == 3;
    p->m.odd_messages = decide(&p->m.d, 4) == 3;
    p->m.snappy = decide(&p->m.d, 4) == 3;
    c->shards = 1 + (int)decide(&p->m.d, MADE_SHARDS_MAX);
    tensors = decide(&p->m.d, decide(&p->m.d, 4) == 3 ? MADE_TENSORS_MAX + 1 : 8);
    for (size_t i = 0; i < tensors || (i < 3 && p->m.wanted); i++)
        maker_tensor(p, i);
    place(p);
    if (p->count)
        overlap_tensors(p);
    damage_entries(p);
    damage_data(p);
    make_index(p);
    qsort(c->tensor, c->count, sizeof *c->tensor, compare_tensors);
    for (size_t i = 0; i < p->count; i++) {
        buffer_release(&p->entry[i].key);
        buffer_release(&p->entry[i].bytes);
        free(p->entry[i].slice);
    }
    free(p);
}

void made_checkpoint_release(struct made_checkpoint *c)
{
    for (size_t i = 0; i < c->count; i++) {
        buffer_release(&c->tensor[i].name);
        buffer_release(&c->tensor[i].bytes);
    }
    for (int i = 0; i < MADE_SHARDS_MAX; i++)
        buffer_release(&c->shard[i]);
    buffer_release(&c->index);
    buffer_release(&c->damage);
}
