/* CRC-32C and its masking: published values, instruction against table, every length and alignment. */

#include "base/crc32c.h"

#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static void test_vectors(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint32_t crc, masked;
    } cases[] = {
        { "", 0, 0x00000000, 0xa282ead8 },
        { "a", 1, 0xc1d04330, 0x28e46e78 },
        { "123456789", 9, 0xe3069283, 0xc78ab0e5 },
    };
    static const uint32_t zeros[] = {
        0x3a117ba6, 0x07980329, 0x0d3d4199, 0xd8576fb9, 0x4f006462, 0x7c5ff4cf, 0x3156da6b
    }; /* masked, of 4, 8, .. 28 zero bytes */
    uint8_t bytes[32] = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(crc32c(cases[i].bytes, cases[i].n), cases[i].crc);
        assert_int_equal(crc32c_mask(cases[i].crc), cases[i].masked);
    }
    for (size_t k = 0; k < 7; k++)
        assert_int_equal(crc32c_mask(crc32c(bytes, 4 * (k + 1))), zeros[k]);
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794e);
}

/* Bit by bit from the polynomial: the definition. */
static uint32_t by_definition(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

static void test_every_length_and_alignment(void **state)
{
    enum { LENGTH = 20000 };
    uint8_t *bytes = malloc(LENGTH + 16), *exact;
    uint32_t crc[8] = { 0 }, v = 1;

    (void)state;
    for (int i = 0; i < LENGTH + 16; i++)
        bytes[i] = (uint8_t)((v = v * 1664525 + 1013904223) >> 24);
    /* The definition, one byte longer each time, from each of eight alignments. */
    for (size_t n = 0; n <= LENGTH; n++)
        for (size_t at = 0; at < 8; at++) {
            if (n)
                crc[at] = by_definition(crc[at], bytes + at + n - 1, 1);
            if (at == n % 8 || n < 600 || n > LENGTH - 100 || n % 1024 < 3) {
                assert_int_equal(crc32c(bytes + at, n), crc[at]);
                assert_int_equal(crc32c_extend_portable(0, bytes + at, n), crc[at]);
            }
        }
    /* Split in two anywhere, and in memory that ends with the bytes. */
    exact = malloc(5000);
    memcpy(exact, bytes, 5000);
    for (size_t n = 0; n <= 5000; n += n < 100 ? 1 : 37)
        assert_int_equal(crc32c_extend(crc32c(exact, n), exact + n, 5000 - n), crc32c(bytes, 5000));
    for (size_t n = 0; n <= 5000; n += 61)
        assert_int_equal(crc32c_combine(crc32c(exact, n), crc32c(exact + n, 5000 - n), 5000 - n), crc32c(bytes, 5000));
    free(exact);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_length_and_alignment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
