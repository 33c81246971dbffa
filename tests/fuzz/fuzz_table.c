/* The whole way of an index: table, snappy, header, entries, slices. With the first byte odd the CRCs of the blocks are
 * made right first, so that the fuzzer gets behind them. What is read is built again and must read the same. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct context {
    struct table_builder builder;
    int32_t shards;
    int first;
};

static int take(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                struct error *e)
{
    struct context *c = context;
    struct tensor_entry *entry;
    struct buffer bytes = BUFFER_EMPTY;

    table_builder_add(&c->builder, key, key_length, value, value_length);
    if (c->first) {
        c->first = 0;
        if (bundle_header_decode("fuzz", value, value_length, &c->shards, NULL) != OK)
            c->shards = 1;
        return OK;
    }
    if (bundle_entry_decode("fuzz", key, key_length, value, value_length, c->shards, &entry, e) == OK) {
        if (entry->slices)
            bundle_slices_check("fuzz", entry, e);
        bundle_entry_encode(&bytes, entry, e);
        buffer_release(&bytes);
        free(entry);
    }
    return OK;
}

/* Wherever a footer's handles and the index block lead to a block, its CRC is put right. */
static void fix_block(uint8_t *file, size_t n, uint64_t offset, uint64_t size)
{
    if (offset < n && size < n - offset && n - offset - size > 5)
        put_le32(file + offset + size + 1, crc32c_mask(crc32c(file + offset, (size_t)size + 1)));
}

static void fix_crcs(uint8_t *file, size_t n)
{
    uint64_t h[4], first = 0;
    size_t at, end = 0;

    if (n < TABLE_FOOTER)
        return;
    at = n - TABLE_FOOTER;
    memcpy(file + n - 8, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
    for (int i = 0; i < 4; i++) {
        int used = get_varint(file + at, n - at, &h[i]);

        if (used <= 0)
            return;
        at += (size_t)used;
    }
    /* The data blocks: as if the first one began at 0 and ended before the metaindex. */
    if (h[0] >= 5 && h[0] < n) {
        first = h[0] - 5;
        fix_block(file, n, 0, first);
    }
    fix_block(file, n, h[0], h[1]);
    end = (size_t)h[2];
    fix_block(file, n, end, h[3]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer built = BUFFER_EMPTY;
    struct context c = { .shards = 1, .first = 1 };
    struct error e = { 0 };
    uint8_t *copy;

    if (!size || !(copy = malloc(size)))
        return 0;
    memcpy(copy, data + 1, size - 1);
    if (data[0] & 1)
        fix_crcs(copy, size - 1);
    table_builder_init(&c.builder, &built);
    if (table_read("fuzz", copy, size - 1, take, &c, &e) == OK) {
        struct context again = { .shards = 1, .first = 1 };
        struct buffer second = BUFFER_EMPTY;

        if (table_builder_finish(&c.builder, &e) != OK)
            abort();
        table_builder_init(&again.builder, &second);
        if (table_read("again", built.data, built.length, take, &again, &e) != OK ||
            table_builder_finish(&again.builder, &e) != OK || second.length != built.length ||
            memcmp(second.data, built.data, built.length) != 0)
            abort();
        table_builder_release(&again.builder);
        buffer_release(&second);
    } else if (!e.message[0]) {
        abort();
    }
    table_builder_release(&c.builder);
    buffer_release(&built);
    free(copy);
    return 0;
}
