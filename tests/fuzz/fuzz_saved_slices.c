/* V1 checkpoints: tables, or the entries of a table, which is then made of them with right CRCs.
 *
 *   first byte   1: entries: length of the key, of the value, key, value; keys go up, others are left out. 0: the rest is
 *                a table
 *
 * What is read must lie within the data, which is not much longer than the table. */
#include "checkpoint/saved_slices.h"
#include "checkpoint/table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_table(struct buffer *out, const uint8_t *data, size_t size)
{
    const uint8_t *last = NULL;
    size_t last_length = 0;
    struct table_builder t;

    table_builder_init(&t, out);
    for (size_t at = 0; at + 2 <= size && (size_t)data[at] + data[at + 1] <= size - at - 2;) {
        const uint8_t *key = data + at + 2;
        const size_t n = data[at], value_length = data[at + 1], both = n < last_length ? n : last_length;
        const int order = last && both ? memcmp(last, key, both) : 0;

        at += 2 + n + value_length;
        if (last && (order > 0 || (order == 0 && n <= last_length)))
            continue;
        table_builder_add(&t, key, n, key + n, value_length);
        last = key;
        last_length = n;
    }
    if (table_builder_finish(&t, NULL) != OK)
        abort();
    table_builder_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer table = BUFFER_EMPTY;
    struct saved_slices s = { 0 };
    struct error e = { 0 };
    int rc;

    if (!size)
        return 0;
    if (data[0] & 1)
        make_table(&table, data + 1, size - 1);
    else
        buffer_append(&table, data + 1, size - 1);
    if ((rc = saved_slices_read(&s, "fuzz", table.data, table.length, &e)) == OK)
        rc = saved_slices_finish(&s, "fuzz", &e);
    if ((rc != OK && !e.message[0]) || s.data.length > 8 * table.length)
        abort();
    for (size_t i = 0; i < s.entry_count; i++) {
        const struct tensor_entry *entry = s.entries[i];

        if (!entry->slices && (uint64_t)(entry->offset + entry->size) > s.data.length)
            abort();
    }
    saved_slices_release(&s);
    buffer_release(&table);
    return 0;
}
