/* data_files.h - small idx and CIFAR-10 files in a directory of the test's own, for the tests of dataset/. */
#ifndef TESTS_DATASET_DATA_FILES_H
#define TESTS_DATASET_DATA_FILES_H

#include "base/file.h"

#include "tests/check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static inline void directory_make(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");

    assert_true(snprintf(path, size, "%s/dataset-XXXXXX", base && *base ? base : P_tmpdir) < (int)size);
    assert_non_null(mkdtemp(path));
}

static inline void directory_remove(const char *path)
{
    char command[PATH_MAX + 16];

    assert_true(snprintf(command, sizeof command, "rm -rf '%s'", path) < (int)sizeof command);
    assert_int_equal(system(command), 0);
}

static inline void file_put(const char *directory, const char *name, const void *bytes, size_t n)
{
    char path[PATH_MAX];
    FILE *f;

    assert_int_equal(file_join(path, sizeof path, directory, name, NULL), OK);
    assert_non_null(f = fopen(path, "wb"));
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The n bytes as one gzip member into out (capacity bytes); returns its length. */
static inline size_t gzip_pack(const void *bytes, size_t n, uint8_t *out, size_t capacity)
{
    z_stream s = { 0 };
    size_t length;

    assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (Bytef *)(uintptr_t)bytes;
    s.avail_in = (uInt)n;
    s.next_out = out;
    s.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    length = s.total_out;
    deflateEnd(&s);
    return length;
}

/* An idx file of bytes into out: rank sizes, then the data. Returns its length. */
static inline size_t idx_pack(int rank, const uint32_t *size, const uint8_t *data, size_t n, uint8_t *out)
{
    out[0] = out[1] = 0;
    out[2] = 8;
    out[3] = (uint8_t)rank;
    for (int i = 0; i < rank; i++)
        for (int b = 0; b < 4; b++)
            out[4 + 4 * i + b] = (uint8_t)(size[i] >> (24 - 8 * b));
    memcpy(out + 4 + 4 * rank, data, n);
    return 4 + 4 * (size_t)rank + n;
}

/* Image i of a test set: value of pixel p. Every image differs from every other in its first four bytes. */
static inline uint8_t pixel_value(size_t image, size_t p)
{
    return (uint8_t)(p < 4 ? image >> 8 * p : image * 7 + p * 31);
}

/* PART-images... and -labels... of count images height x width; label of image i is i mod 10. gz: packed. */
static inline void mnist_put(const char *directory, const char *part, char mark, int gz, size_t count, size_t height,
                             size_t width)
{
    size_t n = count * height * width;
    uint8_t *data = malloc(n), *file = malloc(n + 16), *packed = malloc(n + n / 8 + 4096);
    uint32_t size[3] = { (uint32_t)count, (uint32_t)height, (uint32_t)width };
    char name[64];
    size_t length;

    assert_true(data && file && packed);
    for (int labels = 0; labels < 2; labels++) {
        if (labels)
            n = count;
        for (size_t i = 0; i < n; i++)
            data[i] = labels ? (uint8_t)(i % 10) : pixel_value(i / (height * width), i % (height * width));
        length = idx_pack(labels ? 1 : 3, size, data, n, file);
        snprintf(name, sizeof name, "%s-%s%cidx%d-ubyte%s", part, labels ? "labels" : "images", mark, labels ? 1 : 3,
                 gz ? ".gz" : "");
        if (gz) {
            length = gzip_pack(file, length, packed, n + n / 8 + 4096);
            file_put(directory, name, packed, length);
        } else {
            file_put(directory, name, file, length);
        }
    }
    free(packed);
    free(file);
    free(data);
}

/* A CIFAR-10 file of count records, numbered from `first` on; label i mod 10. */
static inline void cifar10_put(const char *directory, const char *name, size_t first, size_t count)
{
    uint8_t *file = malloc(count * 3073), *record = file;

    assert_non_null(file);
    for (size_t i = first; i < first + count; i++, record += 3073) {
        record[0] = (uint8_t)(i % 10);
        for (size_t p = 0; p < 3072; p++) /* planar in the file; pixel_value counts interleaved */
            record[1 + p] = pixel_value(i, p % 1024 * 3 + p / 1024);
    }
    file_put(directory, name, file, count * 3073);
    free(file);
}

#endif
