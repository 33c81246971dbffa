/* example_bytes.h - tf.train.Examples and TFRecord files made by hand, for the tests of dataset/stream/. */
#ifndef TESTS_DATASET_EXAMPLE_BYTES_H
#define TESTS_DATASET_EXAMPLE_BYTES_H

#include "base/bytes.h"
#include "base/record_frame.h"

#include "tests/check.h"

#include <string.h>

struct bytes {
    size_t n;
    uint8_t at[1 << 16];
};

static inline void bytes_put(struct bytes *b, const void *data, size_t n)
{
    assert_true(n <= sizeof b->at - b->n);
    if (n)
        memcpy(b->at + b->n, data, n);
    b->n += n;
}

static inline void bytes_varint(struct bytes *b, uint64_t v)
{
    b->n += (size_t)put_varint(b->at + b->n, v);
}

/* A field whose value is the n bytes. */
static inline void bytes_field(struct bytes *b, unsigned number, const void *data, size_t n)
{
    bytes_varint(b, number << 3 | 2);
    bytes_varint(b, n);
    bytes_put(b, data, n);
}

/* An entry of Features: the key with a list of that kind, whose content is given. */
static inline void example_entry(struct bytes *features, const char *key, unsigned kind, const struct bytes *list)
{
    static struct bytes feature, entry;

    feature.n = entry.n = 0;
    bytes_field(&feature, kind, list->at, list->n);
    bytes_field(&entry, 1, key, strlen(key));
    bytes_field(&entry, 2, feature.at, feature.n);
    bytes_field(features, 1, entry.at, entry.n);
}

static inline void example_number(struct bytes *features, const char *key, int64_t value)
{
    static struct bytes list, packed;

    list.n = packed.n = 0;
    bytes_varint(&packed, (uint64_t)value);
    bytes_field(&list, 1, packed.at, packed.n);
    example_entry(features, key, 3, &list);
}

static inline void example_text(struct bytes *features, const char *key, const void *data, size_t n)
{
    static struct bytes list;

    list.n = 0;
    bytes_field(&list, 1, data, n);
    example_entry(features, key, 1, &list);
}

/* Adds the record of an Example of these Features to a file. Returns where its data begin. */
static inline size_t example_record(struct bytes *file, const struct bytes *features)
{
    static struct bytes example;
    const size_t at = file->n;

    example.n = 0;
    bytes_field(&example, 1, features->at, features->n);
    assert_true(example.n + RECORD_OVERHEAD <= sizeof file->at - at);
    memcpy(file->at + at + RECORD_HEADER, example.at, example.n);
    record_seal(file->at + at, example.n);
    file->n += example.n + RECORD_OVERHEAD;
    return at + RECORD_HEADER;
}

#endif
