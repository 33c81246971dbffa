/* The wire scan: a table of encodings, TensorFlow's own event, every cut of them. */
#include "eventlog/format/event_decode.h"

#include "base/error.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"
#include "tests/eventlog/same_event.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *hex;
    int result, values, is_number;
    double number;
} cases[] = {
    { "empty", "", OK, 0, 0, 0 },
    { "simple", "2a 0a 0a 08 0a 01 61 15 00 00 00 40", OK, 1, 1, 2 },
    { "simple, no tag", "2a 07 0a 05 15 00 00 00 40", OK, 1, 1, 2 },
    { "tag twice, last counts", "2a 0d 0a 0b 0a 01 62 0a 01 61 15 00 00 00 40", OK, 1, 1, 2 },
    { "two summaries merge", "2a 0a 0a 08 0a 01 61 15 00 00 00 40 2a 0a 0a 08 0a 01 61 15 00 00 80 40", OK, 2, 1, 2 },
    { "graph after summary wins", "2a 0a 0a 08 0a 01 61 15 00 00 00 40 22 00", OK, 0, 0, 0 },
    { "summary after graph wins", "22 00 2a 0a 0a 08 0a 01 61 15 00 00 00 40", OK, 1, 1, 2 },
    { "unknown fields", "a0 06 01 2a 0d 0a 0b 0a 01 61 a2 06 00 15 00 00 00 40", OK, 1, 1, 2 },
    { "unknown group", "2a 10 0a 0e 0a 01 61 a3 06 08 01 a4 06 15 00 00 00 40", OK, 1, 1, 2 },
    { "group that ends as another", "2a 10 0a 0e 0a 01 61 a3 06 08 01 ac 06 15 00 00 00 40", ERR_CORRUPT, 0, 0, 0 },
    { "end of no group", "a4 06", ERR_CORRUPT, 0, 0, 0 },
    { "field 0", "00 01", ERR_CORRUPT, 0, 0, 0 },
    { "wire type 6", "0e 01", ERR_CORRUPT, 0, 0, 0 },
    { "step of another type is skipped", "15 00 00 00 40", OK, 0, 0, 0 },
    { "varint of 11 bytes", "10 ff ff ff ff ff ff ff ff ff ff 01", ERR_CORRUPT, 0, 0, 0 },
    { "length over the end", "2a 0b 0a 08 0a 01 61 15 00 00 00 40", ERR_CORRUPT, 0, 0, 0 },
    { "length of 2^63", "2a 80 80 80 80 80 80 80 80 80 01", ERR_CORRUPT, 0, 0, 0 },
    { "float_val, no shape", "2a 0f 0a 0d 0a 01 61 42 08 08 01 2a 04 00 00 00 40", OK, 1, 1, 2 },
    { "float_val unpacked", "2a 0e 0a 0c 0a 01 61 42 07 08 01 2d 00 00 00 40", OK, 1, 1, 2 },
    { "tensor_content", "2a 11 0a 0f 0a 01 61 42 0a 08 01 12 00 22 04 00 00 00 40", OK, 1, 1, 2 },
    { "shape [1]", "2a 15 0a 13 0a 01 61 42 0e 08 01 12 04 12 02 08 01 2a 04 00 00 00 40", OK, 1, 1, 2 },
    { "shape [2]", "2a 15 0a 13 0a 01 61 42 0e 08 01 12 04 12 02 08 02 2a 04 00 00 00 40", OK, 1, 0, 0 },
    { "two floats", "2a 13 0a 11 0a 01 61 42 0c 08 01 2a 08 00 00 00 40 00 00 00 40", OK, 1, 0, 0 },
    { "torn packed floats", "2a 0e 0a 0c 0a 01 61 42 07 08 01 2a 03 00 00 00", ERR_CORRUPT, 0, 0, 0 },
    { "double_val", "2a 13 0a 11 0a 01 61 42 0c 08 02 32 08 00 00 00 00 00 00 04 40", OK, 1, 1, 2.5 },
    { "int32 -1", "2a 15 0a 13 0a 01 61 42 0e 08 03 3a 0a ff ff ff ff ff ff ff ff ff 01", OK, 1, 1, -1 },
    { "int32 content", "2a 0f 0a 0d 0a 01 61 42 08 08 03 22 04 fe ff ff ff", OK, 1, 1, -2 },
    { "int64", "2a 0c 0a 0a 0a 01 61 42 05 08 09 52 01 07", OK, 1, 1, 7 },
    { "content of the wrong size", "2a 0f 0a 0d 0a 01 61 42 08 08 09 22 04 fe ff ff ff", OK, 1, 0, 0 },
    { "half", "2a 0d 0a 0b 0a 01 61 42 06 08 13 6a 02 80 78", OK, 1, 1, 1 },
    { "half content, least", "2a 0d 0a 0b 0a 01 61 42 06 08 13 22 02 01 80", OK, 1, 1, -0x1p-24 },
    { "half, most", "2a 0d 0a 0b 0a 01 61 42 06 08 13 22 02 ff 7b", OK, 1, 1, 65504 },
    { "bfloat16", "2a 0d 0a 0b 0a 01 61 42 06 08 0e 22 02 40 c0", OK, 1, 1, -3 },
    { "bool", "2a 0c 0a 0a 0a 01 61 42 05 08 0a 5a 01 01", OK, 1, 1, 1 },
    { "uint8", "2a 0d 0a 0b 0a 01 61 42 06 08 04 3a 02 ff 01", OK, 1, 1, 255 },
    { "int8 content", "2a 0c 0a 0a 0a 01 61 42 05 08 06 22 01 ff", OK, 1, 1, -1 },
    { "int16 content", "2a 0d 0a 0b 0a 01 61 42 06 08 05 22 02 00 80", OK, 1, 1, -32768 },
    { "uint16", "2a 0e 0a 0c 0a 01 61 42 07 08 11 3a 03 ff ff 03", OK, 1, 1, 65535 },
    { "uint32", "2a 11 0a 0f 0a 01 61 42 0a 08 16 82 01 05 ff ff ff ff 0f", OK, 1, 1, 4294967295 },
    { "uint64 content", "2a 13 0a 11 0a 01 61 42 0c 08 17 22 08 00 00 00 00 00 00 00 80", OK, 1, 1, 0x1p63 },
    { "two halves", "2a 0f 0a 0d 0a 01 61 42 08 08 13 6a 04 80 78 80 78", OK, 1, 0, 0 },
    { "complex", "2a 13 0a 11 0a 01 61 42 0c 08 08 22 08 00 00 00 00 00 00 00 80", OK, 1, 0, 0 },
    { "simple after tensor wins", "2a 14 0a 12 0a 01 61 42 08 08 01 2a 04 00 00 80 3f 15 00 00 00 40", OK, 1, 1, 2 },
    { "image", "2a 0b 0a 09 0a 01 61 22 04 08 02 10 03", OK, 1, 0, 0 },
    { "image that is no message", "2a 0b 0a 09 0a 01 61 22 04 08 02 10 83", ERR_CORRUPT, 0, 0, 0 },
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t hex[200], *bytes;
        size_t n = hex_bytes(cases[i].hex, hex), bad = 0, walked = 0;
        struct event event;
        struct event_values values;
        const struct event_value *value;

        bytes = malloc(n ? n : 1); /* of its own, so that a sanitizer sees one byte too many */
        memcpy(bytes, hex, n);
        if (event_decode(bytes, n, &event, &bad) != cases[i].result ||
            (int)event.values * !cases[i].result != cases[i].values)
            fail_msg("%s: %zu values", cases[i].name, event.values);
        if (cases[i].values && (event.first.is_number != cases[i].is_number ||
                                (cases[i].is_number && event.first.number != cases[i].number)))
            fail_msg("%s: number %d %g", cases[i].name, event.first.is_number, event.first.number);
        event_values_init(&values, &event);
        while (cases[i].result == OK && (value = event_values_next(&values))) {
            if (cases[i].values && strcmp(cases[i].name, "simple, no tag") != 0)
                assert_memory_equal(value->tag, "a", 1);
            walked++;
        }
        assert_int_equal(walked, cases[i].values);
        free(bytes);
        for (size_t cut = 0; cut < n; cut++) { /* never a read behind the end */
            bytes = malloc(cut ? cut : 1);
            memcpy(bytes, hex, cut);
            (void)event_decode(bytes, cut, &event, &bad);
            assert_true(bad <= n);
            free(bytes);
        }
    }
}

static void test_tensorflow_event(void **state)
{
    uint8_t bytes[100];
    size_t n = hex_bytes("09 c4 05 b7 3d 99 d6 d7 41 10 4d 2a 25 0a 23 0a 08 61 63 63 75 72 61 63 79 42 0a 08 01 12 00"
                         "22 04 a4 70 7d 3f 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 73",
                         bytes);
    struct event event;
    (void)state;

    assert_int_equal(event_decode(bytes, n, &event, NULL), OK);
    assert_true(event.wall_time == 1599759606.859727);
    assert_int_equal(event.step, 77);
    assert_int_equal(event.what, EVENT_SUMMARY);
    assert_int_equal(event.values, 1);
    assert_memory_equal(event.first.tag, "accuracy", 8);
    assert_true(event.first.number == (double)0.99f);
    assert_int_equal(event.first.plugin_length, 7);
    assert_memory_equal(event.first.plugin, "scalars", 7);
    assert_true(event.is_utf8);
    bytes[20] = 0xff; /* in the tag */
    assert_int_equal(event_decode(bytes, n, &event, NULL), OK);
    assert_false(event.is_utf8);
}

/* Usual events with any one byte changed to anything: the quick way and the long one agree. */
static void test_quick_way(void **state)
{
    static const char *const rows[] = {
        "09 c4 05 b7 3d 99 d6 d7 41 10 4d 2a 0f 0a 0d 0a 06 6c 6f 73 73 c3 a9 15 00 00 00 40",
        "09 c4 05 b7 3d 99 d6 d7 41 10 ff 4d 2a 10 0a 0e 0a 00 42 0a 08 01 12 00 22 04 a4 70 7d 3f",
        ("09 c4 05 b7 3d 99 d6 d7 41 10 4d 2a 25 0a 23 0a 08 61 63 63 75 72 61 63 79 42 0a 08 01 12 00"
         "2a 04 a4 70 7d 3f 4a 0b 0a 09 0a 07 73 63 61 6c 61 72 73"),
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t hex[100], *bytes;
        size_t n = hex_bytes(rows[i], hex);
        struct event event;

        bytes = malloc(n);
        memcpy(bytes, hex, n);
        for (size_t at = 0; at < n; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                bytes[at] = (uint8_t)byte;
                if (!same_the_long_way(bytes, n, event_decode(bytes, n, &event, NULL), &event))
                    fail_msg("row %zu, byte %zu = %02x", i, at, byte);
                bytes[at] = hex[at];
            }
        for (size_t cut = 1; cut < n; cut++) {
            uint8_t *end = malloc(cut); /* of its own, so that a sanitizer sees one byte too many */

            memcpy(end, bytes, cut);
            assert_true(same_the_long_way(end, cut, event_decode(end, cut, &event, NULL), &event));
            free(end);
        }
        free(bytes);
    }
}

/* Lengths of one byte end at 127: beyond, the byte that a length would be is half of another. */
static void test_quick_way_long_tags(void **state)
{
    (void)state;
    for (unsigned tag = 90; tag < 150; tag++) {
        uint8_t bytes[200] = { 0x09, 0xc4, 0x05, 0xb7, 0x3d, 0x99, 0xd6, 0xd7, 0x41, 0x10, 0x4d };
        size_t n = 11 + 11 + tag;
        struct event event;

        bytes[11] = 0x2a;
        bytes[12] = (uint8_t)(tag + 9);
        bytes[13] = 0x0a;
        bytes[14] = (uint8_t)(tag + 7);
        bytes[15] = 0x0a;
        bytes[16] = (uint8_t)tag;
        memset(bytes + 17, 'a', tag);
        bytes[17 + tag] = 0x15;
        assert_true(same_the_long_way(bytes, n, event_decode(bytes, n, &event, NULL), &event));
    }
}

static void test_large_int64(void **state)
{
    static const struct {
        const char *hex;
        int rounded;
    } rows[] = {
        { "2a 13 0a 11 0a 01 61 42 0c 08 09 22 08 00 00 00 00 00 00 20 00", 0 }, /* 2^53 */
        { "2a 13 0a 11 0a 01 61 42 0c 08 09 22 08 01 00 00 00 00 00 20 00", 1 },
        { "2a 13 0a 11 0a 01 61 42 0c 08 09 22 08 ff ff ff ff ff ff ff 7f", 1 },
        { "2a 13 0a 11 0a 01 61 42 0c 08 09 22 08 00 00 00 00 00 00 00 80", 0 }, /* -2^63 */
    };
    (void)state;

    for (size_t i = 0; i < 4; i++) {
        struct event event;
        uint8_t bytes[40];
        size_t n = hex_bytes(rows[i].hex, bytes);

        assert_int_equal(event_decode(bytes, n, &event, NULL), OK);
        assert_true(event.first.is_number);
        assert_int_equal(event.first.is_rounded, rows[i].rounded);
    }
}

static void test_session_log(void **state)
{
    static const struct {
        const char *hex;
        enum event_session session;
    } rows[] = {
        { "10 14 3a 02 08 01", EVENT_SESSION_START },
        { "10 14 3a 02 08 04", EVENT_SESSION_NONE },
        { "10 14 3a 06 08 81 80 80 80 10", EVENT_SESSION_START }, /* of an enum's varint 32 bits count */
    };
    struct event event;
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[20];
        size_t n = hex_bytes(rows[i].hex, bytes);

        assert_int_equal(event_decode(bytes, n, &event, NULL), OK);
        assert_int_equal(event.session, rows[i].session);
        assert_int_equal(event.step, 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),       cmocka_unit_test(test_tensorflow_event),
        cmocka_unit_test(test_quick_way),   cmocka_unit_test(test_quick_way_long_tags),
        cmocka_unit_test(test_large_int64), cmocka_unit_test(test_session_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
