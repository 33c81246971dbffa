/*
 * made_checkpoint_parts.h - what the parts of made_checkpoint.h share while they make one: decisions, the damage that
 * is still to be done, and numbers as they may be written. made_checkpoint_tensors.c makes tensors,
 * made_checkpoint_message.c encodes messages, made_checkpoint_table.c the index's table.
 */
#ifndef TESTS_FUZZ_MADE_CHECKPOINT_PARTS_H
#define TESTS_FUZZ_MADE_CHECKPOINT_PARTS_H

#include "tests/fuzz/made_checkpoint.h"

/* Damage, and its name in reports. */
#define MADE_DAMAGES(X) \
    X(DATA_BITS, "data-bits") \
    X(DATA_CUT, "data-cut") \
    X(DATA_MISSING, "data-missing") \
    X(TENSORS_OVERLAP, "tensors-overlap") \
    X(STRING_LENGTH, "string-length") \
    X(STRING_CHECK, "string-check") \
    X(VARIANT_LENGTH, "variant-length") \
    X(VARIANT_CHECK, "variant-check") \
    X(ENTRY_TYPE, "entry-type") \
    X(ENTRY_SIZE, "entry-size") \
    X(ENTRY_OFFSET, "entry-offset") \
    X(ENTRY_SHARD, "entry-shard") \
    X(ENTRY_SHAPE, "entry-shape") \
    X(ENTRY_CRC, "entry-crc") \
    X(ENTRY_RANK, "entry-rank") \
    X(ENTRY_NAME, "entry-dimension-name") \
    X(ENTRY_CUT, "entry-cut") \
    X(SLICES_OVERLAP, "slices-overlap") \
    X(SLICES_GAP, "slices-gap") \
    X(SLICE_MISSING, "slice-missing") \
    X(SLICE_LOOSE, "slice-loose") \
    X(SLICE_TYPE, "slice-type") \
    X(SLICE_SHAPE, "slice-shape") \
    X(HEADER_MISSING, "header-missing") \
    X(HEADER_ENDIANNESS, "header-endianness") \
    X(HEADER_SHARDS, "header-shards") \
    X(HEADER_PRODUCER, "header-producer") \
    X(HEADER_MIN_CONSUMER, "header-min-consumer") \
    X(HEADER_BAD_CONSUMER, "header-bad-consumer") \
    X(KEYS_ORDER, "keys-order") \
    X(KEYS_DOUBLED, "keys-doubled") \
    X(KEY_SHARED, "key-shared") \
    X(KEY_UNSHARED, "key-unshared") \
    X(VALUE_LENGTH, "value-length") \
    X(RESTART_SHARED, "restart-shared") \
    X(RESTART_OFFSET, "restart-offset") \
    X(RESTART_COUNT, "restart-count") \
    X(RESTART_NONE, "restart-none") \
    X(BLOCK_TYPE, "block-type") \
    X(BLOCK_TYPE_SNAPPY, "block-type-snappy") \
    X(BLOCK_CRC, "block-crc") \
    X(BLOCK_BITS, "block-bits") \
    X(SNAPPY_LENGTH, "snappy-length") \
    X(SNAPPY_OFFSET_ZERO, "snappy-offset-zero") \
    X(SNAPPY_OFFSET_BEFORE, "snappy-offset-before") \
    X(SNAPPY_CUT, "snappy-cut") \
    X(SNAPPY_MORE, "snappy-more") \
    X(SEPARATOR_LOW, "separator-low") \
    X(SEPARATOR_HIGH, "separator-high") \
    X(HANDLE_OVERLAP, "handle-overlap") \
    X(HANDLE_GAP, "handle-gap") \
    X(HANDLE_OVERFLOW, "handle-overflow") \
    X(HANDLE_SIZE, "handle-size") \
    X(HANDLE_CUT, "handle-cut") \
    X(METAINDEX_FILLED, "metaindex-filled") \
    X(FOOTER_HANDLE, "footer-handle") \
    X(FOOTER_LONG, "footer-long") \
    X(FOOTER_PADDING, "footer-padding") \
    X(FOOTER_MAGIC, "footer-magic") \
    X(INDEX_CUT, "index-cut") \
    X(INDEX_MORE, "index-more") \
    X(BLOCK_NOISE, "block-noise") \
    X(ENTRY_NOISE, "entry-noise") \
    X(ENTRY_REFERENCE, "entry-reference")

enum made_damage {
#define MADE_DAMAGE(damage, name) damage,
    MADE_DAMAGES(MADE_DAMAGE)
#undef MADE_DAMAGE
        DAMAGES
};

struct maker {
    struct decisions d;
    struct made_checkpoint *out;
    uint64_t wanted; /* bits of the damage that is still to be done */
    int busy;        /* 1: this block, entry or tensor has its damage: a second one could undo it */
    int long_varints, odd_messages, snappy; /* of this checkpoint */
};

/* Is this damage to be done, here? */
static inline int maker_wants(const struct maker *m, enum made_damage damage)
{
    return !m->busy && (m->wanted >> damage & 1);
}

/* It was done. */
void maker_did(struct maker *m, enum made_damage damage);

/* Appends a varint, in some checkpoints of more bytes than need be, up to `longest`. */
void maker_varint(struct maker *m, struct buffer *out, uint64_t v, size_t longest);
void maker_le32(struct buffer *out, uint32_t v);

enum {
    MADE_STRING = 7,
    MADE_VARIANT = 21,
    MADE_TYPES = 34,     /* numbers of DataType */
    MADE_SLICED_MAX = 4, /* partitioned variables of a checkpoint */
    MADE_SLICES_MAX = 9, /* slices of one of them */
    MADE_ENTRIES_MAX = MADE_TENSORS_MAX + MADE_SLICED_MAX * (MADE_SLICES_MAX + 1) + 2,
};

struct slice {
    int64_t start[MADE_RANK_MAX + 1], length[MADE_RANK_MAX + 1]; /* length -1: not spelled out, the whole dimension */
};

/* An entry of the index that is still to be encoded. */
struct entry {
    struct buffer key, bytes; /* bytes: what is stored; none where there are slices */
    int type, rank, unknown_rank, bad_name, damaged;
    int64_t shape[MADE_RANK_MAX + 1], shard, offset, size;
    uint32_t crc;        /* not masked */
    struct slice *slice; /* not NULL: a partitioned variable */
    size_t slices;
};

struct plan {
    struct maker m;
    struct entry entry[MADE_ENTRIES_MAX];
    size_t count, sliced;
};

extern const unsigned char maker_element_size[MADE_TYPES]; /* 0: not fixed */
int64_t maker_elements(const int64_t *shape, int rank);

/* Adds a tensor, and the entries that it takes. */
void maker_tensor(struct plan *p, size_t number);

struct made_row {
    struct buffer key, value;
};

/* The table of these rows, in this order. */
void maker_table(struct maker *m, const struct made_row *rows, size_t count, struct buffer *out);

/* The fields of a message. Order, unknown fields, zeros and fields given twice are decided. */
enum { MESSAGE_FIELDS_MAX = 48 };
struct message {
    struct maker *m;
    struct {
        uint32_t number;
        struct buffer bytes;
    } field[MESSAGE_FIELDS_MAX];
    size_t count;
};

void message_init(struct message *g, struct maker *m);
void message_number(struct message *g, uint32_t number, int64_t v); /* zero: mostly left out */
void message_number_always(struct message *g, uint32_t number, int64_t v);
void message_fixed32(struct message *g, uint32_t number, uint32_t v);
void message_bytes(struct message *g, uint32_t number, const void *bytes, size_t n);
/* Appends the message and releases it. */
void message_finish(struct message *g, struct buffer *out);

#endif
