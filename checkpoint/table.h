/*
 * table.h - reads and writes the sorted string table that holds a checkpoint's index. Pure: no files. The format is
 * described at the top of table.c. Thread-safe: nothing is shared.
 */
#ifndef CHECKPOINT_TABLE_H
#define CHECKPOINT_TABLE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* ---- snappy block ------------------------------------------------------------------------------------------------ */

/*
 * Unpacks a block that snappy has packed, as checkpoint indexes of other programs may have them. Ours
 * are not packed. Pure; nothing beyond the given bytes is read or written, whatever they are.
 */

/* No block unpacks to more than this many times its bytes: no element makes more than 64 bytes of 3. */
enum { SNAPPY_BLOCK_EXPANSION = 22 };

/* The length that the block says it unpacks to. 1; 0: it says none. */
int snappy_block_length(const void *block, size_t n, size_t *length);

/* Unpacks the block to exactly `length` bytes, which snappy_block_length() gave. 1; 0: it is damaged, and out has
 * anything. */
int snappy_block_unpack(const void *block, size_t n, void *out, size_t length);

/* ---- table ------------------------------------------------------------------------------------------------------- */

enum { TABLE_FOOTER = 48 }; /* bytes of the footer, the least that a table has */

/* 1 if these TABLE_FOOTER bytes, the last of a file, end with the magic number of a table. */
int table_footer_valid(const void *footer);

/* Called for each entry in ascending order of keys. Key and value are borrowed until it returns. A result other than OK
 * ends the reading, and table_read() returns it. */
typedef int table_visit(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                        struct error *e);

/* Reads and checks the whole table: footer, CRC of every block, every entry, the order of keys, the index against the
 * blocks, and that blocks follow each other without gaps, so that no byte of the file goes unchecked. `name` names the
 * table in errors. ERR_CORRUPT names the byte. */
int table_read(const char *name, const void *bytes, size_t n, table_visit *visit, void *context, struct error *e);

/* Builds a table, byte for byte as TensorFlow's bundle writer does. If memory runs out, buffer_ok() of `out` says
 * so. */
struct table_builder {
    struct buffer *out;     /* borrowed; the table's bytes are appended */
    size_t start;           /* where in `out` the table begins */
    struct buffer block;    /* entries of the data block being built */
    struct buffer restarts; /* its restart offsets, as stored */
    struct buffer index;    /* entries of the index block */
    struct buffer index_restarts;
    struct buffer last_key; /* of the last entry added */
    size_t in_block;        /* entries in `block` since its last restart */
    int pending;            /* 1: a block was closed; its index entry waits for the next key */
    size_t pending_offset, pending_size;
};

void table_builder_init(struct table_builder *t, struct buffer *out);
void table_builder_release(struct table_builder *t);
/* Keys must come in strictly ascending order of their bytes. */
void table_builder_add(struct table_builder *t, const void *key, size_t key_length, const void *value,
                       size_t value_length);
/* Closes the last block and writes metaindex, index and footer. ERR_NOMEM if memory ran out on the way. */
int table_builder_finish(struct table_builder *t, struct error *e);

#endif
