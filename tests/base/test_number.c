/* Numbers as text: vectors checked with CPython's repr(); the fast way against a slow one that is plain to see. */

#include "base/bytes.h"
#include "base/number.h"
#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    uint64_t bits;
    const char *text;
} vectors[] = {
    { 0x0000000000000000, "0.0" },
    { 0x8000000000000000, "-0.0" },
    { 0x3ff0000000000000, "1.0" },
    { 0xbff0000000000000, "-1.0" },
    { 0x3fb999999999999a, "0.1" },
    { 0x3fb99999a0000000, "0.10000000149011612" },
    { 0x3fe6666660000000, "0.699999988079071" },
    { 0x3ee4f8b580000000, "9.999999747378752e-06" },
    { 0x3f1a36e2eb1c432d, "0.0001" },
    { 0x3ee4f8b588e368f1, "1e-05" },
    { 0x419d6f3454000000, "123456789.0" },
    { 0x430c6bf526340000, "1000000000000000.0" },
    { 0x4341c37937e07fff, "9999999999999998.0" },
    { 0x4341c37937e08000, "1e+16" },
    { 0x4340000000000000, "9007199254740992.0" },
    { 0x3d30000000000000, "5.684341886080802e-14" },
    { 0x44b52d02c7e14af6, "1e+23" },
    { 0x47efffffe0000000, "3.4028234663852886e+38" },
    { 0x36a0000000000000, "1.401298464324817e-45" },
    { 0x7fefffffffffffff, "1.7976931348623157e+308" },
    { 0x0000000000000001, "5e-324" },
    { 0x0010000000000000, "2.2250738585072014e-308" },
    { 0x3fd5555555555555, "0.3333333333333333" },
    { 0x3fd5555560000000, "0.3333333432674408" },
    { 0x41d954fc4587e6b4, "1700000022.123456" },
    { 0x7ff8000000000000, "nan" },
    { 0x7ff0000000000000, "inf" },
    { 0xfff0000000000000, "-inf" },
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

/*
 * The slow way, by printf and strtod: the fewest digits that read back, of several such the nearest. A power of two has
 * a nearer neighbour below than above, so the nearest 16 digits can miss the interval while the next 16-digit number
 * is inside it: that is the second try.
 */
static int reference_digits(double x, int single, char digits[20], int *point)
{
    int low = single ? 6 : 15, high = single ? 9 : 17, n = 0, precision;
    char text[40], upper[40], *c;

    if (x < (single ? 1.17549435e-38 : 2.2250738585072014e-308))
        low = 1; /* subnormal: fewer digits may do */
    for (precision = low; precision < high; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, x);
        if ((single ? (double)strtof(text, NULL) : strtod(text, NULL)) == x)
            break;
    }
    if (precision == high) {
        int i;

        snprintf(text, sizeof text, "%.*e", high - 1, x);
        snprintf(upper, sizeof upper, "%.*e", high - 2, x);
        for (i = high - 1; i >= 0; i--) { /* upper, "d.ddd": last digit up by one; upper[1] is the point */
            if (i == 1)
                continue;
            if (upper[i] != '9') {
                upper[i]++;
                break;
            }
            upper[i] = '0';
        }
        if (i >= 0 && (single ? (double)strtof(upper, NULL) : strtod(upper, NULL)) == x)
            memcpy(text, upper, sizeof text);
    }
    for (c = text; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9')
            digits[n++] = *c;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    *point = atoi(c + 1) + 1;
    return n;
}

static void reference(double x, int single, char *out)
{
    char digits[20];
    int n, point;

    if (signbit(x))
        *out++ = '-';
    n = reference_digits(fabs(x), single, digits, &point);
    if (point > 16 || point <= -4)
        sprintf(out, "%c%s%se%c%02d", digits[0], n > 1 ? "." : "", digits + 1, point > 0 ? '+' : '-', abs(point - 1));
    else if (point <= 0)
        sprintf(out, "0.%.*s%s", -point, "000", digits);
    else if (point >= n)
        sprintf(out, "%s%.*s.0", digits, point - n, "0000000000000000");
    else
        sprintf(out, "%.*s.%s", point, digits, digits + point);
}

static void check(uint64_t bits)
{
    double x = bits_double(bits), back;
    char text[NUMBER_TEXT_MAX], want[64];

    if (!isfinite(x) || x == 0)
        return;
    reference(x, 0, want);
    if (number_text(x, text) != (int)strlen(text) || strcmp(text, want) != 0)
        fail_msg("%016llx became %s, not %s", (unsigned long long)bits, text, want);
    if (!number_parse_double(text, &back) || double_bits(back) != bits)
        fail_msg("%016llx became %s, which is another number", (unsigned long long)bits, text);
}

static void check_float(uint32_t bits)
{
    float x = bits_float(bits);
    char text[NUMBER_TEXT_MAX], want[64];

    if (!isfinite(x) || x == 0)
        return;
    reference((double)x, 1, want);
    if (number_text_float(x, text) != (int)strlen(text) || strcmp(text, want) != 0)
        fail_msg("%08x became %s, not %s", bits, text, want);
    if (float_bits(strtof(text, NULL)) != bits)
        fail_msg("%08x became %s, which is another number", bits, text);
}

/* Every power of two with its neighbours: there the intervals are uneven. */
static void test_powers_of_two(void **state)
{
    (void)state;
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        for (int side = -2; side <= 2; side++)
            check((exponent << 52) + (uint64_t)side);
    for (int bit = 0; bit < 52; bit++)
        for (int side = -2; side <= 2; side++)
            check(((uint64_t)1 << bit) + (uint64_t)side);
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (int side = -2; side <= 2; side++)
            check_float((exponent << 23) + (uint32_t)side);
}

static void test_powers_of_ten(void **state)
{
    char text[32];

    (void)state;
    for (int n = -324; n <= 308; n++)
        for (int first = 1; first < 10; first++) {
            uint64_t bits;

            snprintf(text, sizeof text, "%de%d", first, n);
            bits = double_bits(strtod(text, NULL));
            for (int side = -1; side <= 1; side++)
                check(bits + (uint64_t)side);
            check_float(float_bits(strtof(text, NULL)));
        }
}

static void test_subnormals(void **state)
{
    struct random r;

    (void)state;
    for (uint32_t bits = 1; bits < 5000; bits++) {
        check(bits);
        check_float(bits);
    }
    random_init(&r, 4, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 5000; i++) {
        uint64_t bits = (uint64_t)random_u32(&r) << 32 | random_u32(&r);

        check(bits >> (12 + i % 50));
        check_float((uint32_t)bits >> (9 + i % 20));
    }
}

static void test_random_bits(void **state)
{
    struct random r;

    (void)state;
    random_init(&r, 5, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 40000; i++) {
        uint64_t bits = (uint64_t)random_u32(&r) << 32 | random_u32(&r);

        check(bits);
        check(double_bits((double)bits_float((uint32_t)bits)));
        check_float((uint32_t)bits);
    }
}

/* Numbers as logs hold them: wall times of every fineness, whole numbers, short decimals, losses. */
static void test_usual(void **state)
{
    static const double scales[] = { 1, 10, 100, 1000, 1e6, 1e7, 1e9 };
    char text[NUMBER_TEXT_MAX];
    struct random r;

    (void)state;
    number_text_float(0.1f, text);
    assert_string_equal(text, "0.1");
    number_text_float(-16777216.0f, text);
    assert_string_equal(text, "-16777216.0");
    random_init(&r, 6, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        double whole = random_u32(&r), scale = scales[i % 7], fraction = random_u32(&r) % (uint32_t)scale;

        check(double_bits(1e9 + whole / 1.4 + fraction / scale));
        check(double_bits(999999999 + fraction / scale));
        check(double_bits(4294967295 + fraction / scale));
        check(double_bits(floor(whole * whole / scale)));
        check(double_bits(-whole / scale));
    }
}

/* All numbers of digits, and those beside powers of ten, as printf writes them; nothing is written behind the room. */
static void check_integer(int64_t v)
{
    char text[NUMBER_TEXT_MAX + 1], want[NUMBER_TEXT_MAX];
    int n;

    text[NUMBER_TEXT_MAX] = '!';
    n = number_text_integer(v, text);
    assert_int_equal(n, snprintf(want, sizeof want, "%lld", (long long)v));
    assert_memory_equal(text, want, (size_t)n);
    assert_int_equal(text[NUMBER_TEXT_MAX], '!');
}

static void test_integers(void **state)
{
    struct random r;

    (void)state;
    for (int64_t v = -1000; v <= 1000; v++)
        check_integer(v);
    for (int64_t power = 1000; power <= INT64_MAX / 10; power *= 10)
        for (int64_t side = -2; side <= 2; side++) {
            check_integer(power + side);
            check_integer(-power + side);
            check_integer(power * 7 / 3 + side);
        }
    check_integer(INT64_MAX);
    check_integer(INT64_MIN);
    random_init(&r, 7, RANDOM_TEST, 0, 0);
    for (int i = 0; i < 20000; i++)
        check_integer((int64_t)((uint64_t)random_u32(&r) << 32 | random_u32(&r)) >> i % 64);
}

static void test_parsing(void **state)
{
    static const struct {
        const char *text;
        int good;
        int64_t v;
    } integers[] = {
        { "0", 1, 0 },
        { "-7", 1, -7 },
        { "9223372036854775807", 1, INT64_MAX },
        { "-9223372036854775808", 1, INT64_MIN },
        { "9223372036854775808", 0, 0 },
        { "", 0, 0 },
        { "7x", 0, 0 },
        { " 7", 0, 0 },
        { "7 ", 0, 0 },
        { "0x10", 0, 0 },
        { "1.0", 0, 0 },
        { "-", 0, 0 },
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
        cmocka_unit_test(test_vectors),    cmocka_unit_test(test_powers_of_two), cmocka_unit_test(test_powers_of_ten),
        cmocka_unit_test(test_subnormals), cmocka_unit_test(test_random_bits),   cmocka_unit_test(test_usual),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_parsing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
