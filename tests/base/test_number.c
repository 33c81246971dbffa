/* Numbers as text: vectors checked with CPython's repr(), and every text must read back as the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/number.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { uint64_t bits; const char *text; } vectors[] = {
    { 0x0000000000000000, "0.0" },                { 0x8000000000000000, "-0.0" },
    { 0x3ff0000000000000, "1.0" },                { 0xbff0000000000000, "-1.0" },
    { 0x3fb999999999999a, "0.1" },                { 0x3fb99999a0000000, "0.10000000149011612" },
    { 0x3fe6666660000000, "0.699999988079071" },  { 0x3ee4f8b580000000, "9.999999747378752e-06" },
    { 0x3f1a36e2eb1c432d, "0.0001" },             { 0x3ee4f8b588e368f1, "1e-05" },
    { 0x419d6f3454000000, "123456789.0" },        { 0x430c6bf526340000, "1000000000000000.0" },
    { 0x4341c37937e07fff, "9999999999999998.0" }, { 0x4341c37937e08000, "1e+16" },
    { 0x4340000000000000, "9007199254740992.0" }, { 0x3d30000000000000, "5.684341886080802e-14" },
    { 0x44b52d02c7e14af6, "1e+23" },              { 0x47efffffe0000000, "3.4028234663852886e+38" },
    { 0x36a0000000000000, "1.401298464324817e-45" }, { 0x7fefffffffffffff, "1.7976931348623157e+308" },
    { 0x0000000000000001, "5e-324" },             { 0x0010000000000000, "2.2250738585072014e-308" },
    { 0x3fd5555555555555, "0.3333333333333333" }, { 0x3fd5555560000000, "0.3333333432674408" },
    { 0x41d954fc4587e6b4, "1700000022.123456" },  { 0x7ff8000000000000, "nan" },
    { 0x7ff0000000000000, "inf" },                { 0xfff0000000000000, "-inf" },
};

static void test_vectors(void **state)
{
    char text[NUMBER_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        assert_int_equal(number_text(bits_double(vectors[i].bits), text), strlen(vectors[i].text));
        assert_string_equal(text, vectors[i].text);
    }
}

/* Reads back as the same bits, and no text with a digit less does. */
static void check(uint64_t bits)
{
    double x = bits_double(bits), back;
    char text[NUMBER_TEXT_MAX], shorter[64];
    int digits = 0;

    if (!isfinite(x))
        return;
    number_text(x, text);
    if (!number_parse_double(text, &back) || double_bits(back) != bits)
        fail_msg("%016llx became %s", (unsigned long long)bits, text);
    for (const char *c = text; *c && *c != 'e'; c++)
        digits += *c >= '0' && *c <= '9' && (digits || *c != '0');
    if (strstr(text, ".0") && !strstr(text, ".0e") && text[strlen(text) - 2] == '.')
        return; /* whole numbers show all their digits */
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", digits - 2, x);
        if (double_bits(strtod(shorter, NULL)) == bits)
            fail_msg("%s is longer than %s", text, shorter);
    }
}

static void test_round_trip(void **state)
{
    struct random r;

    (void)state;
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        for (int side = -1; side <= 1; side++)
            check((exponent << 52) + (uint64_t)side);
    random_init(&r, 5, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 60000; i++) {
        uint64_t bits = (uint64_t)random_u32(&r) << 32 | random_u32(&r);

        check(bits);
        check(double_bits((double)bits_float((uint32_t)bits)));
    }
}

static void test_floats(void **state)
{
    char text[NUMBER_TEXT_MAX];
    struct random r;

    (void)state;
    number_text_float(0.1f, text);
    assert_string_equal(text, "0.1");
    random_init(&r, 6, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 60000; i++) {
        uint32_t bits = random_u32(&r);

        if (!isfinite(bits_float(bits)))
            continue;
        number_text_float(bits_float(bits), text);
        if (float_bits(strtof(text, NULL)) != bits)
            fail_msg("%08x became %s", bits, text);
    }
}

static void test_parsing(void **state)
{
    static const struct { const char *text; int good; int64_t v; } integers[] = {
        { "0", 1, 0 }, { "-7", 1, -7 }, { "9223372036854775807", 1, INT64_MAX },
        { "-9223372036854775808", 1, INT64_MIN }, { "9223372036854775808", 0, 0 }, { "", 0, 0 }, { "7x", 0, 0 },
        { " 7", 0, 0 }, { "7 ", 0, 0 }, { "0x10", 0, 0 }, { "1.0", 0, 0 }, { "-", 0, 0 },
    };
    static const char *const not_doubles[] = { "", " 1", "1 ", "1e", "abc", "1e999", "." };
    int64_t v;
    double x;

    (void)state;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        int good = number_parse_int(integers[i].text, &v);

        if (good != integers[i].good || (good && v != integers[i].v))
            fail_msg("\"%s\": %d", integers[i].text, good);
    }
    for (size_t i = 0; i < sizeof not_doubles / sizeof *not_doubles; i++)
        if (number_parse_double(not_doubles[i], &x))
            fail_msg("\"%s\" was taken for %g", not_doubles[i], x);
    assert_int_equal(number_parse_double("1e-400", &x), 1);
    assert_int_equal(number_parse_double("-2.5e3", &x), 1);
    assert_true(x == -2500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_parsing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
