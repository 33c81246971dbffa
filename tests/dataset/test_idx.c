/* idx.h: headers, gzip, every split of the input, every cut, and damaged bytes. */
#include "dataset/idx.h"

#include "tests/dataset/data_files.h"

#define B(text) (const uint8_t *)text, sizeof text - 1

/* Feeds in pieces of `piece` bytes; the code of the first failure. */
static int decode(const uint8_t *bytes, size_t n, size_t piece, struct idx *out, struct error *e)
{
    struct idx_decoder *d;
    int rc;

    memset(out, 0, sizeof *out);
    assert_int_equal(idx_decoder_new(&d, "FILE", n, e), OK);
    rc = OK;
    for (size_t at = 0; at < n && rc == OK; at += piece) {
        size_t length = n - at < piece ? n - at : piece;
        uint8_t *copy = malloc(length); /* its own, so that the sanitizer sees reads past the end */

        assert_non_null(copy);
        memcpy(copy, bytes + at, length);
        rc = idx_decoder_feed(d, copy, length, e);
        free(copy);
    }
    if (rc == OK)
        rc = idx_decoder_finish(d, out, e);
    idx_decoder_free(d);
    return rc;
}

static const struct {
    const char *name;
    const uint8_t *bytes;
    size_t n;
    int want;
    const char *sentence;
} cases[] = {
    { "vector of bytes",
      B("\0\0\x08\x01\0\0\0\x03"
        "abc"),
      OK, NULL },
    { "2x2x1 bytes",
      B("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01"
        "abcd"),
      OK, NULL },
    { "none", B("\0\0\x08\x01\0\0\0\0"), OK, NULL },
    { "zero and huge", B("\0\0\x08\x02\xff\xff\xff\xff\0\0\0\0"), ERR_CORRUPT, "byte 4" },
    { "shorts",
      B("\0\0\x0b\x01\0\0\0\x02"
        "abcd"),
      OK, NULL },
    { "doubles",
      B("\0\0\x0e\x01\0\0\0\x01"
        "abcdefgh"),
      OK, NULL },
    { "empty", B(""), ERR_CORRUPT, "byte 0: the file ends inside the IDX header" },
    { "one byte", B("\0"), ERR_CORRUPT, "byte 1: the file ends inside the IDX header" },
    { "cut sizes", B("\0\0\x08\x02\0\0\0\x03\0\0"), ERR_CORRUPT, "byte 10: the file ends inside the IDX header" },
    { "cut data",
      B("\0\0\x08\x01\0\0\0\x03"
        "ab"),
      ERR_CORRUPT, "byte 10: the file ends after 2 of the 3 bytes" },
    { "too long",
      B("\0\0\x08\x01\0\0\0\x03"
        "abcd"),
      ERR_CORRUPT, "byte 11: the file continues" },
    { "magic",
      B("\x01\0\x08\x01\0\0\0\x03"
        "abc"),
      ERR_CORRUPT, "byte 0: 01 00 08 01 is not an IDX header" },
    { "type",
      B("\0\0\x0a\x01\0\0\0\x03"
        "abc"),
      ERR_CORRUPT, "byte 0: 00 00 0a 01 is not an IDX header" },
    { "rank 0", B("\0\0\x08\0"), ERR_CORRUPT, "not an IDX header" },
    { "rank 5", B("\0\0\x08\x05\0\0\0\x01"), ERR_CORRUPT, "not an IDX header" },
    { "promise", B("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ERR_CORRUPT,
      "byte 4: the header promises 4294967295x4294967295x4294967295 elements" },
    { "text", B("<html>404"), ERR_CORRUPT, "byte 0: 3c 68 74 6d is not an IDX header" },
    { "gzip cut in its header", B("\x1f\x8b\x08\0"), ERR_CORRUPT, "byte 4: the gzip stream is truncated" },
    { "gzip of another method", B("\x1f\x8b\x07\0\0\0\0\0\0\0"), ERR_CORRUPT, "the gzip stream is damaged" },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece <= cases[i].n + 1; piece++) {
            struct error e = { 0 };
            struct idx x;
            int rc = decode(cases[i].bytes, cases[i].n, piece, &x, &e);

            if (rc != cases[i].want || (cases[i].sentence && !strstr(e.message, cases[i].sentence)))
                fail_msg("%s in pieces of %zu: %d, \"%s\"", cases[i].name, piece, rc, e.message);
            if (rc == OK)
                assert_memory_equal(x.data, cases[i].bytes + cases[i].n - x.bytes, x.bytes);
            idx_release(&x);
            assert_int_equal(decode(cases[i].bytes, cases[i].n, piece, &x, NULL), cases[i].want);
            idx_release(&x);
        }
    }
}

/* One file as two gzip members, byte by byte and in every other piece size; then every cut and every damaged bit. */
static void test_gzip(void **state)
{
    uint8_t data[40 * 5], file[300], packed[1200], bad[1200];
    const uint32_t size[] = { 40, 5 };
    size_t plain, n;
    struct error e;
    struct idx x;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i >> 3);
    plain = idx_pack(2, size, data, sizeof data, file);
    n = gzip_pack(file, 90, packed, sizeof packed);
    n += gzip_pack(file + 90, plain - 90, packed + n, sizeof packed - n);
    for (size_t piece = 1; piece <= n; piece++) {
        if (decode(packed, n, piece, &x, &e) != OK)
            fail_msg("pieces of %zu: %s", piece, e.message);
        assert_int_equal(x.bytes, sizeof data);
        assert_int_equal(x.size[0], 40);
        assert_int_equal(x.size[1], 5);
        assert_int_equal(x.size[2], 1);
        assert_memory_equal(x.data, data, sizeof data);
        idx_release(&x);
    }
    for (size_t cut = 0; cut < n; cut++) {
        assert_int_equal(decode(packed, cut, 7, &x, &e), ERR_CORRUPT);
        assert_true(strstr(e.message, "get the file again") || strstr(e.message, "ends inside the IDX header"));
    }
    /* One gzip member, so that every bit is covered by its CRC or its frame; time, system and flags are free. */
    n = gzip_pack(file, plain, packed, sizeof packed);
    for (size_t bit = 10 * 8; bit < n * 8; bit++) {
        memcpy(bad, packed, n);
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (decode(bad, n, n, &x, &e) == OK) { /* padding bits, or a match moved to equal bytes */
            assert_memory_equal(x.data, data, sizeof data);
            idx_release(&x);
            continue;
        }
        assert_int_equal(e.code, ERR_CORRUPT);
        assert_non_null(strstr(e.message, "FILE: byte "));
    }
    packed[n] = 'x';
    assert_int_equal(decode(packed, n + 1, 3, &x, &e), ERR_CORRUPT);
}

/* More output than the header promises, hidden in the same deflate stream. */
static void test_gzip_too_long(void **state)
{
    uint8_t data[20] = { 0 }, file[64], packed[200];
    const uint32_t size[] = { 19 };
    size_t n = idx_pack(1, size, data, 20, file);
    struct error e;
    struct idx x;

    (void)state;
    n = gzip_pack(file, n, packed, sizeof packed);
    for (size_t piece = 1; piece <= n; piece++) {
        assert_int_equal(decode(packed, n, piece, &x, &e), ERR_CORRUPT);
        assert_non_null(strstr(e.message, "continues after the 19 bytes"));
    }
}

static void test_read(void **state)
{
    char directory[PATH_MAX], path[PATH_MAX];
    const uint32_t size[] = { 3 };
    uint8_t file[32];
    struct error e = { 0 };
    struct idx x;

    (void)state;
    directory_make(directory, sizeof directory);
    file_put(directory, "x", file, idx_pack(1, size, (const uint8_t *)"abc", 3, file));
    file_join(path, sizeof path, directory, "x", NULL);
    assert_int_equal(idx_read(&x, path, &e), OK);
    assert_memory_equal(x.data, "abc", 3);
    idx_release(&x);
    file_join(path, sizeof path, directory, "y", NULL);
    assert_int_equal(idx_read(&x, path, &e), ERR_IO);
    assert_non_null(strstr(e.message, path));
    assert_int_equal(idx_read(&x, directory, &e), ERR_IO);
    directory_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_gzip_too_long),
        cmocka_unit_test(test_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
