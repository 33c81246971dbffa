/* A whole checkpoint in files: index and one or two shards of data, opened and read in every way there is.
 *
 *   first byte     1: CRCs of tensors are made right, so that the fuzzer gets behind them; 2: a second shard; 4: opened
 *                  as damaged; 8: read by two threads
 *   entries        length of the key, of the value, key, value; until a length of 0 and 0. Keys go up; others are left out
 *   the rest       the bytes of the shards, half each
 *
 * What can be read whole reads the same in pieces and in a batch. */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/table.h"
#include "checkpoint/tensor_batch.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_stream.h"
#include "tests/fuzz/fuzz_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RIGHT_CRC = 1, TWO_SHARDS = 2, DAMAGED = 4, THREADS = 8, LARGEST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_file(const char *name, const void *bytes, size_t n)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", fuzz_directory(), name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n))
        abort();
    close(fd);
}

/* The value with the CRC that its bytes have, if they are in their shard. */
static void append_right(struct table_builder *t, const uint8_t *key, size_t key_length, const uint8_t *value,
                         size_t value_length, const uint8_t *shard[2], const size_t length[2])
{
    struct buffer bytes = BUFFER_EMPTY;
    struct tensor_entry *entry;

    if (bundle_entry_decode("fuzz", key, key_length, value, value_length, 2, &entry, NULL) != OK) {
        table_builder_add(t, key, key_length, value, value_length);
        return;
    }
    /* A partitioned variable has no bytes of its own: its shard means nothing. */
    if (!entry->slices && (uint64_t)entry->offset <= length[entry->shard] &&
        (uint64_t)entry->size <= length[entry->shard] - (uint64_t)entry->offset) {
        const uint8_t *stored = shard[entry->shard] + entry->offset;
        uint32_t crc = crc32c(stored, (size_t)entry->size);

        if (entry->type == TENSOR_STRING) /* whose CRC is over the lengths as numbers of 32 bits */
            string_tensor_check(stored, (size_t)entry->size, entry->elements, &crc, NULL);
        entry->crc = crc32c_mask(crc);
    }
    if (bundle_entry_encode(&bytes, entry, NULL) == OK)
        table_builder_add(t, key, key_length, bytes.data, bytes.length);
    buffer_release(&bytes);
    free(entry);
}

static size_t entries_end(const uint8_t *data, size_t size)
{
    size_t at = 1;

    while (at + 2 <= size && (data[at] || data[at + 1]) && (size_t)data[at] + data[at + 1] <= size - at - 2)
        at += 2 + (size_t)data[at] + data[at + 1];
    return at;
}

static void write_files(const uint8_t *data, size_t size)
{
    const size_t end = entries_end(data, size), begin = end + 2 < size ? end + 2 : size;
    const size_t first = data[0] & TWO_SHARDS ? (size - begin) / 2 : size - begin;
    const uint8_t *shard[2] = { data + begin, data + begin + first }, *last = (const uint8_t *)"";
    const size_t length[2] = { first, size - begin - first };
    struct buffer index = BUFFER_EMPTY, header = BUFFER_EMPTY;
    struct table_builder t;
    size_t last_length = 0;

    table_builder_init(&t, &index);
    bundle_header_encode(&header, data[0] & TWO_SHARDS ? 2 : 1);
    table_builder_add(&t, "", 0, header.data, header.length);
    for (size_t at = 1; at < end; at += 2 + (size_t)data[at] + data[at + 1]) {
        const uint8_t *key = data + at + 2;
        const size_t n = data[at], both = n < last_length ? n : last_length;
        const int order = memcmp(last, key, both);

        if (order > 0 || (order == 0 && n <= last_length))
            continue;
        if (data[0] & RIGHT_CRC)
            append_right(&t, key, n, key + n, data[at + 1], shard, length);
        else
            table_builder_add(&t, key, n, key + n, data[at + 1]);
        last = key;
        last_length = n;
    }
    if (table_builder_finish(&t, NULL) != OK)
        abort();
    put_file("b.index", index.data, index.length);
    put_file(data[0] & TWO_SHARDS ? "b.data-00000-of-00002" : "b.data-00000-of-00001", shard[0], length[0]);
    put_file("b.data-00001-of-00002", shard[1], length[1]);
    table_builder_release(&t);
    buffer_release(&header);
    buffer_release(&index);
}

static void same_in_pieces(struct tensor_bundle *b, const struct tensor_entry *entry, const char *whole, size_t bytes)
{
    struct tensor_stream *s;
    struct error e = { 0 };
    char piece[7];
    size_t at = 0, got;

    if (tensor_stream_open(&s, b, entry, &e) != OK)
        abort();
    do {
        if (tensor_stream_read(s, piece, sizeof piece, &got, &e) != OK || got > bytes - at ||
            memcmp(piece, whole + at, got) != 0)
            abort();
        at += got;
    } while (got);
    if (at != bytes)
        abort();
    tensor_stream_close(s);
}

static void same_in_batch(struct tensor_bundle *b, const struct tensor_entry *entry, const char *whole, size_t bytes,
                          int threads)
{
    char *again = malloc(bytes ? bytes : 1);
    const struct tensor_batch_item item = { entry, again, bytes };

    if (!again || tensor_batch_read(b, &item, 1, threads, NULL) != OK || memcmp(whole, again, bytes) != 0)
        abort();
    free(again);
}

static void read_entry(struct tensor_bundle *b, const struct tensor_entry *entry, int damaged, int threads)
{
    const uint64_t bytes = tensor_entry_bytes(entry);
    struct error e = { 0 };
    float *floats;
    int64_t integer;
    char *out;

    if (bytes > LARGEST || entry->elements > LARGEST)
        return; /* the file could not hold it; only slices that are one in the other, opened as damaged, say so */
    if (!(out = calloc(1, (size_t)bytes + !bytes)) || !(floats = calloc((size_t)entry->elements + 1, sizeof *floats)))
        abort();
    if (tensor_bundle_read(b, entry, out, (size_t)bytes, &e) != OK) {
        if (!e.message[0])
            abort();
    } else if (!damaged) { /* else slices may leave gaps, which nobody fills */
        same_in_batch(b, entry, out, (size_t)bytes, threads);
        same_in_pieces(b, entry, out, (size_t)bytes);
    }
    tensor_bundle_read_float(b, entry, floats, (size_t)entry->elements, &e);
    tensor_bundle_read_integer(b, entry, &integer, &e);
    free(out);
    free(floats);
}

static void count_problem(void *context, const struct error *problem)
{
    int *problems = context;

    if (!problem->message[0])
        abort();
    (*problems)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tensor_bundle *b = NULL;
    struct error e = { 0 };
    char prefix[80];
    int problems = 0, rc;

    if (!size)
        return 0;
    write_files(data, size);
    snprintf(prefix, sizeof prefix, "%s/b", fuzz_directory());
    rc = data[0] & DAMAGED ? tensor_bundle_open_damaged(&b, prefix, count_problem, &problems, &e)
                           : tensor_bundle_open(&b, prefix, &e);
    if (rc != OK && (!e.message[0] || b))
        abort();
    for (size_t i = 0; rc == OK && i < tensor_bundle_count(b); i++)
        read_entry(b, tensor_bundle_entry(b, i), problems > 0, data[0] & THREADS ? 2 : 1);
    tensor_bundle_close(b);
    return 0;
}
