/* Tensors, histograms, files and hyperparameters out of the bytes of a Summary.Value: tables of encodings, cuts of them. */
#include "eventlog/format/value_content.h"

#include "eventlog/format/event_decode.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"

#include <stdlib.h>
#include <string.h>

/* ---- tensors: elements as they lie in memory -------------------------------------------------------------------- */

static const struct {
    const char *name, *value;
    int read;          /* tensor_content_read() */
    const char *bytes; /* of tensor_content_bytes(), NULL where it refuses */
} tensors[] = {
    { "none", "0a 01 61 15 00 00 00 40", 0, NULL },
    { "rank 0, content", "42 08 08 01 22 04 00 00 00 40", 1, "00 00 00 40" },
    { "cut in the list", "42 10 08 01 12 04 12 02 08 02 2a 08 00 00 00 40 00 00 80 40", 1, NULL },
    { "float_val packed", "42 12 08 01 12 04 12 02 08 02 2a 08 00 00 00 40 00 00 80 40", 1, "00 00 00 40 00 00 80 40" },
    { "unpacked", "42 12 08 01 12 04 12 02 08 02 2d 00 00 00 40 2d 00 00 80 40", 1, "00 00 00 40 00 00 80 40" },
    { "one for all", "42 0d 08 01 12 04 12 02 08 03 2d 00 00 00 40", 1, "00 00 00 40 00 00 00 40 00 00 00 40" },
    { "too few", "42 12 08 01 12 04 12 02 08 03 2a 08 00 00 00 40 00 00 80 40", 1, NULL },
    { "torn list", "42 0d 08 01 12 04 12 02 08 01 2a 03 00 00 00", 1, NULL },
    { "no elements", "42 08 08 02 12 04 12 02 08 00", 1, "" },
    { "int32 -1", "42 0e 08 03 3a 0a ff ff ff ff ff ff ff ff ff 01", 1, "ff ff ff ff" },
    { "uint8, cut", "42 0b 08 04 12 04 12 02 08 02 3a 03 ff 01 07", 1, NULL },
    { "uint8", "42 0d 08 04 12 04 12 02 08 02 3a 03 ff 01 07", 1, "ff 07" },
    { "half", "42 05 08 13 6a 01 07", 1, "07 00" },
    { "bool", "42 05 08 0a 5a 01 01", 1, "01" },
    { "bools, any number but 0", "42 11 08 0a 12 04 12 02 08 04 5a 07 80 02 02 00 80 80 01", 1, "01 01 00 01" },
    { "complex64", "42 0c 08 08 4a 08 00 00 00 40 00 00 80 40", 1, "00 00 00 40 00 00 80 40" },
    { "content of the wrong size", "42 09 08 01 12 00 22 03 00 00 00", 1, NULL },
    { "shape of 2^62", "42 12 08 01 12 0c 12 0a 08 80 80 80 80 80 80 80 80 40 22 00", 1, NULL },
    { "negative shape", "42 11 08 01 12 0d 12 0b 08 ff ff ff ff ff ff ff ff ff 01", 1, NULL },
    { "strings", "42 08 08 07 42 01 61 42 01 62", 1, NULL },
    { "unknown type", "42 06 08 63 22 02 00 00", 1, NULL },
};

static void test_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        uint8_t value[200], wanted[200];
        struct buffer bytes = BUFFER_EMPTY;
        size_t n = hex_bytes(tensors[i].value, value), m = tensors[i].bytes ? hex_bytes(tensors[i].bytes, wanted) : 0;
        struct tensor_content t;
        int read = tensor_content_read(&t, value, n), good = read && tensor_content_bytes(&t, 1000, &bytes);

        if (read != tensors[i].read || good != (tensors[i].bytes != NULL))
            fail_msg("%s: %d %d", tensors[i].name, read, good);
        if (good && (bytes.length != m || memcmp(buffer_text(&bytes), wanted, m) != 0))
            fail_msg("%s: %zu bytes", tensors[i].name, bytes.length);
        buffer_release(&bytes);
        for (size_t cut = 0; cut < n; cut++) { /* any cut is read as far as it goes */
            if (tensor_content_read(&t, value, cut))
                tensor_content_bytes(&t, 1000, &bytes);
            buffer_release(&bytes);
        }
    }
}

static void test_limit(void **state)
{
    uint8_t value[40];
    size_t n = hex_bytes("42 0e 08 01 12 05 12 03 08 80 08 2d 00 00 00 40", value); /* one float for 1024 */
    struct buffer bytes = BUFFER_EMPTY;
    struct tensor_content t;

    (void)state;
    assert_true(tensor_content_read(&t, value, n));
    assert_int_equal(t.elements, 1024);
    assert_false(tensor_content_bytes(&t, 4095, &bytes));
    assert_int_equal(bytes.length, 0);
    assert_true(tensor_content_bytes(&t, 4096, &bytes));
    assert_int_equal(bytes.length, 4096);
    buffer_release(&bytes);
}

static void test_strings(void **state)
{
    uint8_t value[40];
    size_t n = hex_bytes("42 10 08 07 12 04 12 02 08 03 42 01 61 42 00 42 01 62", value), at = 0;
    struct tensor_content t;
    struct span text;

    (void)state;
    assert_true(tensor_content_read(&t, value, n));
    assert_int_equal(t.rank, 1);
    assert_true(tensor_content_string(&t, &at, &text) && text.length == 1 && *text.bytes == 'a');
    assert_true(tensor_content_string(&t, &at, &text) && text.length == 0);
    assert_true(tensor_content_string(&t, &at, &text) && text.length == 1 && *text.bytes == 'b');
    assert_false(tensor_content_string(&t, &at, &text));
}

/* ---- histograms ------------------------------------------------------------------------------------------------ */

#define D(x) x " " /* a double by its eight bytes */
#define MINUS_1 "00 00 00 00 00 00 f0 bf"
#define ZERO "00 00 00 00 00 00 00 00"
#define ONE "00 00 00 00 00 00 f0 3f"
#define TWO "00 00 00 00 00 00 00 40"
#define THREE "00 00 00 00 00 00 08 40"

static const struct {
    const char *name, *value;
    int good;
    size_t count;
    struct histogram_row rows[3];
} histograms[] = {
    { "old",
      "2a 46 09 " D(MINUS_1) "11 " D(THREE) "32 18 " D(ZERO) D(ONE) D(TWO) "3a 18 " D(ONE) D(ZERO) D(TWO),
      1,
      3,
      { { -1, 0, 1 }, { 0, 1, 0 }, { 1, 3, 2 } } },
    { "old, empty outside",
      "2a 46 09 " D(MINUS_1) "11 " D(THREE) "32 18 " D(ZERO) D(ONE) D(TWO) "3a 18 " D(ZERO) D(TWO) D(ZERO),
      1,
      1,
      { { -1, 3, 2 } } },
    { "old, all empty", "2a 14 32 08 " D(ONE) "3a 08 " D(ZERO), 1, 0, { { 0, 0, 0 } } },
    { "old, more limits", "2a 1c 32 10 " D(ONE) D(TWO) "3a 08 " D(TWO), 1, 1, { { 0, 0, 2 } } },
    { "old, unpacked", "2a 12 31 " D(ONE) "39 " D(TWO), 1, 1, { { 0, 0, 2 } } },
    { "old, torn list", "2a 05 32 03 00 00 00", 0, 0, { { 0, 0, 0 } } },
    { "doubles", "42 26 08 02 12 08 12 02 08 01 12 02 08 03 22 18 " D(MINUS_1) D(ONE) D(TWO), 1, 1, { { -1, 1, 2 } } },
    { "floats",
      "42 1a 08 01 12 08 12 02 08 01 12 02 08 03 22 0c 00 00 80 bf 00 00 80 3f 00 00 00 40",
      1,
      1,
      { { -1, 1, 2 } } },
    { "no rows", "42 0c 08 02 12 08 12 02 08 00 12 02 08 03", 1, 0, { { 0, 0, 0 } } },
    { "two columns", "42 1e 08 02 12 08 12 02 08 01 12 02 08 02 22 10 " D(ONE) D(TWO), 0, 0, { { 0, 0, 0 } } },
    { "integers",
      "42 1a 08 03 12 08 12 02 08 01 12 02 08 03 22 0c 00 00 00 00 00 00 00 00 00 00 00 00",
      0,
      0,
      { { 0, 0, 0 } } },
    { "a number", "15 00 00 00 40", 0, 0, { { 0, 0, 0 } } },
    /* Of several members of the oneof the last counts. */
    { "floats after old",
      "2a 14 32 08 " D(ONE) "3a 08 " D(TWO) "42 1a 08 01 12 08 12 02 08 01 12 02 08 03 22 0c "
                                            "00 00 80 bf 00 00 80 3f 00 00 00 40",
      1,
      1,
      { { -1, 1, 2 } } },
    { "a number after old", "2a 14 32 08 " D(ONE) "3a 08 " D(TWO) "15 00 00 00 40", 0, 0, { { 0, 0, 0 } } },
};

static void test_histograms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof histograms / sizeof *histograms; i++) {
        uint8_t value[300];
        struct buffer rows = BUFFER_EMPTY;
        size_t n = hex_bytes(histograms[i].value, value), count = 99;
        int good = histogram_content_rows(value, n, &rows, &count);

        if (good != histograms[i].good || (good && count != histograms[i].count) ||
            (good && rows.length != count * sizeof(struct histogram_row)))
            fail_msg("%s: %d, %zu rows, %zu bytes", histograms[i].name, good, count, rows.length);
        if (good && count && memcmp(rows.data, histograms[i].rows, rows.length) != 0)
            fail_msg("%s: other rows", histograms[i].name);
        buffer_release(&rows);
    }
}

/* ---- files, metadata ------------------------------------------------------------------------------------------- */

static void test_files(void **state)
{
    uint8_t value[60];
    struct span file;
    size_t n = hex_bytes("22 09 08 02 10 03 22 03 47 49 46", value);

    (void)state;
    assert_true(image_content_read(value, n, &file) && file.length == 3 && !memcmp(file.bytes, "GIF", 3));
    assert_false(audio_content_read(value, n, &file));
    n = hex_bytes("32 05 10 01 22 01 52", value);
    assert_true(audio_content_read(value, n, &file) && file.length == 1);
    n = hex_bytes("22 05 22 03 47 49 46 32 05 10 01 22 01 52", value); /* an image, and then the clip that counts */
    assert_false(image_content_read(value, n, &file));
    assert_true(audio_content_read(value, n, &file) && file.length == 1);
    assert_string_equal(media_extension((const uint8_t *)"\x89PNG\r\n\x1a\nxx", 10), ".png");
    assert_string_equal(media_extension((const uint8_t *)"\xff\xd8\xff", 3), ".jpg");
    assert_string_equal(media_extension((const uint8_t *)"GIF89a", 6), ".gif");
    assert_string_equal(media_extension((const uint8_t *)"BM", 2), ".bmp");
    assert_string_equal(media_extension((const uint8_t *)"RIFF\0\0\0\0WAVE", 12), ".wav");
    assert_string_equal(media_extension((const uint8_t *)"RIFF", 4), ".bin");
    assert_string_equal(media_extension((const uint8_t *)"", 0), ".bin");
}

static void test_sizes(void **state)
{
    static const struct {
        const char *value;
        int width, height;
    } cases[] = {
        { "22 09 08 02 10 03 22 03 47 49 46", 3, 2 },
        { "42 09 08 07 42 01 33 42 02 31 32", 3, 12 }, /* strings "3", "12" */
        { "42 05 08 07 42 01 33", 3, 0 },
        { "42 0a 08 07 42 02 33 78 42 02 31 32", 0, 12 }, /* "3x" */
        { "42 10 08 07 42 0c 31 31 31 31 31 31 31 31 31 31 31 31", 0, 0 },
        { "22 04 08 02 10 03 42 08 08 07 42 01 37 42 01 38", 7, 8 }, /* an image, and then the strings that count */
        { "15 00 00 80 3f", 0, 0 },
        { "", 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t width = -1, height = -1;
        uint8_t value[60];

        image_content_size(value, hex_bytes(cases[i].value, value), &width, &height);
        assert_int_equal(width, cases[i].width);
        assert_int_equal(height, cases[i].height);
    }
}

static int collect(void *context, const struct hparam *h)
{
    struct buffer *out = context;

    buffer_format(out, "%.*s=", (int)h->name.length, (const char *)h->name.bytes);
    if (h->type == HPARAM_NUMBER || h->type == HPARAM_BOOL)
        buffer_format(out, "%c%g ", h->type == HPARAM_BOOL ? '!' : '#', h->number);
    else
        buffer_format(out, "%.*s ", (int)h->text.length, (const char *)h->text.bytes);
    return h->name.length == 4; /* "stop" */
}

static void test_metadata(void **state)
{
    uint8_t bytes[200];
    struct buffer text = BUFFER_EMPTY;
    struct summary_metadata m;
    /* plugin "hp" with content {3: {1: {a: 0.5}, 1: {b: true}, 1: {c: "x"}, 1: {d: null}}}, name "N", description "D" */
    size_t n = hex_bytes(
        "0a 34 0a 02 68 70 12 2e 1a 2c 0a 0e 0a 01 61 12 09 11 00 00 00 00 00 00 e0 3f 0a 07 0a 01 62 12 "
        "02 20 01 0a 08 0a 01 63 12 03 1a 01 78 0a 07 0a 01 64 12 02 08 00 12 01 4e 1a 01 44",
        bytes);

    (void)state;
    summary_metadata_read(&m, bytes, n);
    assert_true(m.plugin.length == 2 && !memcmp(m.plugin.bytes, "hp", 2));
    assert_true(m.display_name.length == 1 && *m.display_name.bytes == 'N');
    assert_true(m.description.length == 1 && *m.description.bytes == 'D');
    assert_int_equal(summary_metadata_hparams(&m, collect, &text), 0);
    assert_string_equal(buffer_text(&text), "a=#0.5 b=!1 c=x d= ");
    for (size_t cut = 0; cut < n; cut++) {
        buffer_clear(&text);
        summary_metadata_read(&m, bytes, cut);
        summary_metadata_hparams(&m, collect, &text);
    }
    buffer_clear(&text);
    n = hex_bytes("0a 10 12 0e 1a 0c 0a 06 0a 04 73 74 6f 70 0a 02 0a 00", bytes);
    summary_metadata_read(&m, bytes, n);
    assert_int_equal(summary_metadata_hparams(&m, collect, &text), 1); /* the walk ends where the function says so */
    assert_string_equal(buffer_text(&text), "stop= ");
    summary_metadata_read(&m, bytes, 0);
    assert_true(m.plugin.length == 0 && m.content.length == 0 && m.content.bytes);
    buffer_release(&text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),    cmocka_unit_test(test_limit), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_histograms), cmocka_unit_test(test_files), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_metadata),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
