/* Numbers in tensors' bytes: values, text, statistics, differences; and tensors that come in pieces. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "checkpoint/string_tensor.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_stream.h"
#include "checkpoint/tensor_value.h"

#include <math.h>

#define B(text) ((const uint8_t *)(text))

/* float8 values after the OCP 8-bit floating point specification and the papers of the other variants. */
static const struct {
    int type;
    const uint8_t *bytes;
    double value;
    const char *text;
} values[] = {
    { TENSOR_FLOAT, B("\xcd\xcc\xcc\x3d"), 0.10000000149011612, "0.1" },
    { TENSOR_DOUBLE, B("\x9a\x99\x99\x99\x99\x99\xb9\x3f"), 0.1, "0.1" },
    { TENSOR_HALF, B("\x01\x00"), 0x1p-24, "5.9604645e-08" },
    { TENSOR_HALF, B("\xff\x83"), -0x1.ff8p-15, "-6.097555e-05" },
    { TENSOR_HALF, B("\x00\x04"), 0x1p-14, "6.1035156e-05" },
    { TENSOR_HALF, B("\xff\xfb"), -65504, "-65504.0" },
    { TENSOR_HALF, B("\x00\xfc"), -INFINITY, "-inf" },
    { TENSOR_HALF, B("\x01\x7c"), NAN, "nan" },
    { TENSOR_BFLOAT16, B("\xc0\xbf"), -1.5, "-1.5" },
    { 5, B("\xfe\xff"), -2, "-2" },
    { TENSOR_INT64, B("\x00\x00\x00\x00\x00\x00\x00\x80"), -0x1p63, "-9223372036854775808" },
    { 23, B("\xff\xff\xff\xff\xff\xff\xff\xff"), 0x1p64, "18446744073709551615" },
    { 8, B("\x00\x00\x40\x40\x00\x00\x80\xc0"), 5, "3.0-4.0i" },
    { 24, B("\x7b"), 57344, "57344.0" },
    { 24, B("\x7c"), INFINITY, "inf" },
    { 25, B("\x7e"), 448, "448.0" },
    { 25, B("\x7f"), NAN, "nan" },
    { 25, B("\x01"), 0x1p-9, "0.001953125" },
    { 26, B("\x7f"), 240, "240.0" },
    { 26, B("\x80"), NAN, "nan" },
    { 27, B("\x7f"), 30, "30.0" },
    { 28, B("\x7f"), 57344, "57344.0" },
    { 29, B("\xf8"), -8, "-8" },
    { 30, B("\xff"), 15, "15" },
    { 31, B("\xfe"), -2, "-2" },
    { 32, B("\xff"), 3, "3" },
    { TENSOR_FLOAT4, B("\x0f"), -6, "-6.0" },
    { TENSOR_FLOAT4, B("\x01"), 0.5, "0.5" },
    { TENSOR_E8M0, B("\xff"), NAN, "nan" },
    { TENSOR_E8M0, B("\x00"), 0x1p-127, "5.877472e-39" },
    { TENSOR_E8M0, B("\xfe"), 0x1p127, "1.7014118e+38" },
    { TENSOR_BOOL, B("\x01"), 1, "1" },
};

static void test_values(void **state)
{
    char text[TENSOR_VALUE_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double got;
        float narrow;

        tensor_values(values[i].type, values[i].bytes, 1, &got);
        tensor_value_text(values[i].type, values[i].bytes, text);
        if (!(got == values[i].value || (isnan(got) && isnan(values[i].value))) || strcmp(text, values[i].text) != 0)
            fail_msg("row %zu: %g and %s, wanted %g and %s", i, got, text, values[i].value, values[i].text);
        if (tensor_kind(values[i].type) != TENSOR_KIND_FLOAT)
            continue;
        tensor_floats(values[i].type, values[i].bytes, 1, &narrow);
        if (!(narrow == (float)got || (isnan(narrow) && isnan(got))))
            fail_msg("row %zu: %g as float32, wanted %g", i, (double)narrow, got);
    }
    assert_int_equal(tensor_kind(TENSOR_STRING), TENSOR_KIND_NONE);
    assert_int_equal(tensor_kind(-1), TENSOR_KIND_NONE);
}

static void test_statistics(void **state)
{
    enum { N = 5000 };
    double *v = malloc(N * sizeof *v), mean = 0, squares = 0;
    static const int64_t large[] = { INT64_MAX, INT64_MIN, INT64_MAX - 1 };
    struct tensor_statistics s = { 0 }, pieces = { 0 }, empty = { 0 }, exact = { 0 };

    (void)state;
    for (int i = 0; i < N; i++) {
        v[i] = 1e6 + sin(i); /* far from zero: a sum of squares would lose the deviation */
        mean += sin(i) / (double)N;
    }
    for (int i = 0; i < N; i++)
        squares += (sin(i) - mean) * (sin(i) - mean);
    tensor_statistics_add(&s, TENSOR_DOUBLE, v, N);
    for (size_t at = 0; at < N; at += 7)
        tensor_statistics_add(&pieces, TENSOR_DOUBLE, v + at, N - at < 7 ? N - at : 7);
    assert_true(fabs(s.mean - 1e6 - mean) < 1e-8 && fabs(pieces.mean - 1e6 - mean) < 1e-8);
    assert_true(fabs(tensor_statistics_deviation(&s) - sqrt(squares / (double)N)) < 1e-8);
    assert_true(fabs(tensor_statistics_deviation(&pieces) - sqrt(squares / (double)N)) < 1e-8);
    v[3] = NAN;
    v[4] = -INFINITY;
    memset(&s, 0, sizeof s);
    tensor_statistics_add(&s, TENSOR_DOUBLE, v, N);
    assert_true(s.nan == 1 && s.infinite == 1 && s.finite == N - 2 && s.elements == N && s.least > 999998);
    assert_true(isnan(tensor_statistics_deviation(&empty)));
    tensor_statistics_add(&exact, TENSOR_INT64, large, 3);
    assert_true((int64_t)exact.exact_least == INT64_MIN && (int64_t)exact.exact_most == INT64_MAX);
    free(v);
}

static void test_differences(void **state)
{
    enum { N = 3000 };
    float *a = calloc(N, sizeof *a), *b = calloc(N, sizeof *b);
    const int64_t m[] = { INT64_MAX, 5 }, n[] = { INT64_MAX - 1, 5 };
    struct tensor_difference d = { 0 }, tolerant = { .relative_tolerance = 0.01 }, whole = { 0 }, raw = { 0 };

    (void)state;
    a[2999] = 2;
    b[2999] = 1;
    a[1500] = 100;
    b[1500] = 100.5f;
    a[7] = b[7] = NAN;
    a[8] = -0.0f;
    tensor_difference_add(&d, TENSOR_FLOAT, a, b, 2000);
    tensor_difference_add(&d, TENSOR_FLOAT, a + 2000, b + 2000, N - 2000);
    assert_true(d.elements == N && d.different == 2 && d.outside == 2 && d.first == 1500);
    assert_true(d.absolute == 1 && d.relative == 0.5 && bits_float(get_le32(d.b)) == 100.5f);
    assert_true(d.other_bits == 1 && d.squares == 1.25 && d.squares_a == 10004 && d.squares_b == 1 + 100.5 * 100.5);
    tensor_difference_add(&tolerant, TENSOR_FLOAT, a, b, N);
    assert_true(tolerant.different == 2 && tolerant.outside == 1 && tolerant.first == 2999);
    b[0] = INFINITY;
    tensor_difference_add(&tolerant, TENSOR_FLOAT, a, b, 1);
    assert_true(isinf(tolerant.absolute) && tolerant.outside == 2 && isinf(tolerant.squares));
    assert_true(tolerant.squares_b == 1 + 100.5 * 100.5); /* the infinite one does not count */
    tensor_difference_add(&whole, TENSOR_INT64, m, n, 2);
    assert_true(whole.absolute == 1 && whole.different == 1);
    tensor_difference_add(&raw, TENSOR_VARIANT, "abc", "axc", 3);
    assert_true(raw.different == 1 && raw.first == 1);
    free(a);
    free(b);
}

/* Reads a tensor `piece` bytes at a time; what comes must be `wanted`. */
static int stream(struct tensor_bundle *b, const char *name, size_t piece, const void *wanted, size_t n,
                  struct error *e)
{
    struct tensor_stream *s;
    char out[256];
    size_t got = 0, done = 0;
    int rc = tensor_stream_open(&s, b, tensor_bundle_find(b, name), e);

    if (rc != OK)
        return rc;
    while ((rc = tensor_stream_read(s, out + done, piece, &got, e)) == OK && got)
        done += got;
    tensor_stream_close(s);
    if (rc == OK && (done != n || memcmp(out, wanted, n) != 0))
        fail_msg("%s in pieces of %zu: %zu bytes, or others", name, piece, done);
    return rc;
}

static void test_streams(void **state)
{
    static const int64_t shape[] = { 4, 3 }, top[] = { 0, 0 }, middle[] = { 1, 0 }, upper[] = { 1, -1 },
                         lower[] = { 3, -1 }, left[] = { 4, 1 }, right[] = { 4, 2 }, second[] = { 0, 1 },
                         none[] = { 0 };
    static const struct tensor_string words[] = { { "cat", 3 }, { "horse", 5 } };
    static const uint8_t columns[] = { 0, 3, 6, 9, 1, 2, 4, 5, 7, 8, 10, 11 };
    static const int64_t two[] = { 2 };
    uint8_t full[12],
        stored[] = "\x03\x05\xef\xcc\xd4\xff"
                   "cathorse",
        bad = 99;
    struct fixture *f = *state;
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;
    struct error e = { 0 };
    struct buffer data;
    int fd;

    for (uint8_t i = 0; i < 12; i++)
        full[i] = i;
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, fixture_path(f, "m-1"), &e), OK);
    /* Rows in the wrong order in the file, columns, one piece, strings, nothing. */
    assert_int_equal(tensor_bundle_writer_add_slice(w, "rows", TENSOR_UINT8, 2, shape, middle, lower, full + 3, 9, &e),
                     OK);
    assert_int_equal(tensor_bundle_writer_add_slice(w, "rows", TENSOR_UINT8, 2, shape, top, upper, full, 3, &e), OK);
    assert_int_equal(tensor_bundle_writer_add_slice(w, "columns", TENSOR_UINT8, 2, shape, top, left, columns, 4, &e),
                     OK);
    assert_int_equal(
        tensor_bundle_writer_add_slice(w, "columns", TENSOR_UINT8, 2, shape, second, right, columns + 4, 8, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "whole", TENSOR_UINT8, 2, shape, full, 12, &e), OK);
    assert_int_equal(tensor_bundle_writer_add_strings(w, "words", 1, two, words, 2, &e), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "none", TENSOR_UINT8, 1, none, NULL, 0, &e), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, &e), OK);
    assert_int_equal(tensor_bundle_open(&b, fixture_path(f, "m-1"), &e), OK);
    for (size_t piece = 1; piece <= 16; piece++) {
        assert_int_equal(stream(b, "rows", piece, full, 12, &e), OK);
        assert_int_equal(stream(b, "columns", piece, full, 12, &e), OK);
        assert_int_equal(stream(b, "whole", piece, full, 12, &e), OK);
        assert_int_equal(stream(b, "words", piece, stored, 14, &e), OK);
        assert_int_equal(stream(b, "none", piece, full, 0, &e), OK);
    }
    /* A byte of each is changed under our hands: the last read says so. */
    fixture_read(f, "m-1.data-00000-of-00001", &data);
    fd = open(fixture_path(f, "m-1.data-00000-of-00001"), O_WRONLY);
    for (size_t at = 1; at < data.length; at += 6)
        assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
    close(fd);
    buffer_release(&data);
    assert_int_equal(stream(b, "rows", 5, full, 12, &e), ERR_CORRUPT);
    assert_says(e, "CRC mismatch");
    assert_int_equal(stream(b, "columns", 5, full, 12, &e), ERR_CORRUPT);
    assert_int_equal(stream(b, "whole", 5, full, 12, &e), ERR_CORRUPT);
    assert_int_equal(stream(b, "words", 5, full, 12, &e), ERR_CORRUPT);
    tensor_bundle_close(b);
}

static void test_variants(void **state)
{
    uint8_t stored[2 * 4 + 1 + 3 + 1], number[8] = { 3 }, *second = stored + 8;
    uint32_t crc, wanted;
    struct error e = { 0 };

    (void)state;
    memcpy(stored,
           "\x03"
           "abc",
           4);
    wanted = crc32c_extend(crc32c(number, 8), "abc", 3);
    put_le32(stored + 4, crc32c_mask(wanted));
    wanted = crc32c_extend(wanted, stored + 4, 4);
    second[0] = 0;
    number[0] = 0;
    wanted = crc32c_extend(wanted, number, 8);
    put_le32(second + 1, crc32c_mask(wanted));
    wanted = crc32c_extend(wanted, second + 1, 4);
    assert_int_equal(variant_tensor_check(stored, sizeof stored, 2, &crc, &e), OK);
    assert_int_equal(crc, wanted);
    assert_int_equal(variant_tensor_check(stored, sizeof stored, 1, &crc, &e), ERR_CORRUPT);
    assert_int_equal(variant_tensor_check(stored, sizeof stored - 1, 2, &crc, &e), ERR_CORRUPT);
    stored[2] ^= 1;
    assert_int_equal(variant_tensor_check(stored, sizeof stored, 2, &crc, &e), ERR_CORRUPT);
    assert_says(e, "variant 0");
}

/* Whatever the bytes, of whatever type: every element is counted once, and a tensor differs from another as that one
 * does from it. */
static void test_all_types(void **state)
{
    enum { COUNT = 2000, TYPES = 66 };
    static uint8_t a[16 * COUNT], b[16 * COUNT];
    uint32_t random = 1;

    (void)state;
    for (size_t i = 0; i < sizeof a; i++) {
        random = random * 1664525 + 1013904223;
        a[i] = i % 7 < 5 ? (uint8_t)(random >> 24) : i % 2 ? 0xff : 0x7f; /* with NaN and infinity in all types */
        b[i] = i % 32 < 24 ? a[i] : (uint8_t)(random >> 16);
    }
    for (int type = 0; type < TYPES; type++) {
        struct tensor_statistics s = { 0 };
        struct tensor_difference none = { 0 }, there = { .absolute_tolerance = 1 }, back = { .absolute_tolerance = 1 };
        double x[1], y[1];
        char text[TENSOR_VALUE_TEXT];

        tensor_difference_add(&none, type, a, a, COUNT);
        assert_true(none.elements == COUNT && !none.different && !none.other_bits);
        tensor_difference_add(&there, type, a, b, COUNT);
        tensor_difference_add(&back, type, b, a, COUNT);
        assert_true(there.different == back.different && there.outside == back.outside && there.first == back.first);
        assert_true(there.absolute == back.absolute && there.relative == back.relative &&
                    there.outside <= there.different);
        assert_true(there.squares_a == back.squares_b || tensor_kind(type) == TENSOR_KIND_NONE);
        if (tensor_kind(type) == TENSOR_KIND_NONE)
            continue;
        tensor_statistics_add(&s, type, a, COUNT);
        assert_int_equal(s.elements, COUNT);
        assert_int_equal(s.finite + s.nan + s.infinite, COUNT);
        assert_true(s.least <= s.most);
        if (type != TENSOR_DOUBLE && type != 18) /* their sum is infinite */
            assert_true(s.least <= s.mean && s.mean <= s.most && tensor_statistics_deviation(&s) >= 0);
        for (size_t i = 0; i < COUNT; i++) {
            tensor_values(type, a + i * tensor_type_size(type), 1, x);
            tensor_value_text(type, a + i * tensor_type_size(type), text);
            assert_true(*text && (x[0] - x[0] != 0 || (s.least <= x[0] && x[0] <= s.most)));
        }
        tensor_values(type, a, 1, x);
        tensor_values(type, b, 1, y);
        assert_true(isnan(x[0]) == isnan(y[0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_all_types),
        cmocka_unit_test_setup_teardown(test_streams, fixture_setup, fixture_teardown),
        cmocka_unit_test(test_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
