/* Fields and messages in protobuf's wire format, taken and written, and what is kept until the end: bad text. */
#include "eventlog/format/wire.h"

#include "tests/check.h"
#include "tests/eventlog/hex.h"

#include <math.h>
#include <string.h>

static void expect(struct wire *w, const char *hex)
{
    uint8_t want[100];
    size_t n = hex_bytes(hex, want);

    assert_int_equal(wire_check(w, "x", NULL), OK);
    assert_int_equal(w->bytes.length, n);
    if (n)
        assert_memory_equal(w->bytes.data, want, n);
    wire_release(w);
}

static void test_fields(void **state)
{
    struct wire w = WIRE_EMPTY;
    (void)state;

    wire_integer(&w, 1, 0);
    wire_number(&w, 1, 0);
    wire_text(&w, 1, "");
    wire_text(&w, 1, NULL);
    expect(&w, "");
    wire_integer_always(&w, 1, 0);
    wire_number_always(&w, 2, 0);
    wire_text_always(&w, 3, NULL);
    wire_bytes(&w, 4, NULL, 0);
    expect(&w, "0800 110000000000000000 1a00 2200");
    wire_integer(&w, 16, 300);
    wire_integer(&w, 1, -1);
    wire_number(&w, 1, -0.0);
    wire_text(&w, 15, "ö");
    expect(&w, "8001ac02 08ffffffffffffffffff01 090000000000000080 7a02c3b6");
}

/* A message's length grows from one byte to more around 128 and 16384. */
static void test_messages(void **state)
{
    static char content[70000];
    (void)state;

    memset(content, 'x', sizeof content);
    for (size_t n = 0; n < sizeof content; n = n < 20000 ? n + 61 : n * 2) {
        struct wire w = WIRE_EMPTY;
        struct wire flat = WIRE_EMPTY, inner = WIRE_EMPTY;
        size_t outer_mark = wire_begin(&w, 1), mark = wire_begin(&w, 2);

        buffer_append(&w.bytes, content, n);
        wire_end(&w, mark);
        wire_end(&w, outer_mark);
        wire_bytes(&inner, 2, content, n);
        wire_bytes(&flat, 1, inner.bytes.data, inner.bytes.length);
        assert_int_equal(w.bytes.length, flat.bytes.length);
        assert_memory_equal(w.bytes.data, flat.bytes.data, flat.bytes.length);
        wire_release(&w);
        wire_release(&flat);
        wire_release(&inner);
    }
}

static void test_bad_text(void **state)
{
    struct wire w = WIRE_EMPTY;
    struct error e = { 0 };
    (void)state;

    wire_text(&w, 1, "good");
    wire_text(&w, 1, "ba\xff");
    wire_text(&w, 1, "\xff");
    assert_int_equal(wire_check(&w, "a message", &e), ERR_ARG);
    assert_non_null(strstr(e.message, "a message: a text is not UTF-8 at byte 2 (0xff)"));
    wire_release(&w);
    assert_int_equal(wire_check(&w, "x", NULL), OK);
    buffer_reserve(&w.bytes, (size_t)-1 / 2);
    wire_text(&w, 1, "good");
    assert_int_equal(wire_check(&w, "x", NULL), ERR_NOMEM);
    wire_release(&w);
}

/* What is no field is not passed over. */
static void test_take(void **state)
{
    static const struct {
        const char *hex;
        int taken;
        uint64_t number, integer;
        size_t length;
    } cases[] = {
        { "089601 ff", 1, 1, 150, 0 },
        { "82 01 03 616263 ff", 1, 16, 3, 3 },
        { "0d 01020304", 1, 1, 0x04030201, 0 },
        { "09 0102030405060708", 1, 1, 0x0807060504030201, 0 },
        { "13 0801 1b 1c 14", 1, 2, 0, 0 },
        { "14", -1, 0, 0, 0 },
        { "13 0801 1c", 0, 0, 0, 0 },
        { "13 0801", 0, 0, 0, 0 },
        { "00 01", 0, 0, 0, 0 },
        { "8080808010 01", 0, 0, 0, 0 },
        { "0e 01", 0, 0, 0, 0 },
        { "0a 05 61", 0, 0, 0, 0 },
        { "0d 0102", 0, 0, 0, 0 },
        { "08 80", 0, 0, 0, 0 },
        { "88", 0, 0, 0, 0 },
        /* Longer than they must be: a key and a length up to 5 bytes, other varints up to 10. */
        { "8880808000 05", 1, 1, 5, 0 },
        { "888080808000 05", 0, 0, 0, 0 },
        { "0a 8180808000 61", 1, 1, 1, 1 },
        { "0a 818080808000 61", 0, 0, 0, 0 },
        { "08 85808080808080808000", 1, 1, 5, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[40];
        size_t n = hex_bytes(cases[i].hex, bytes);
        const uint8_t *p = bytes;
        struct wire_field f;

        if (wire_take(&p, bytes + n, &f) != cases[i].taken || (cases[i].taken != 1) != (p == bytes))
            fail_msg("%s", cases[i].hex);
        if (cases[i].taken != 1)
            continue;
        assert_int_equal(f.number, cases[i].number);
        assert_int_equal(f.length, cases[i].length);
        if (f.type != WIRE_GROUP)
            assert_int_equal(f.integer, cases[i].integer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_bad_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
