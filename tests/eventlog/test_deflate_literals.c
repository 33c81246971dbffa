/* deflate_literals.h: zlib reads back what was written, of bytes with every kind of frequencies. */
#include "eventlog/write/kinds/deflate_literals.h"

#include "tests/check.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Returns the length of the stream. */
static size_t there_and_back(const uint8_t *bytes, size_t n)
{
    struct deflate_literals plan;
    uint8_t *out, *back = malloc(n);
    z_stream s = { 0 };

    deflate_literals_plan(&plan, bytes, n);
    out = malloc(plan.bytes + DEFLATE_LITERALS_SPARE);
    assert_true(out && back);
    deflate_literals_write(&plan, bytes, n, out);
    assert_int_equal(inflateInit2(&s, -15), Z_OK);
    s.next_in = out;
    s.avail_in = (uInt)plan.bytes;
    s.next_out = back;
    s.avail_out = (uInt)n;
    assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END);
    assert_int_equal(s.avail_in, 0);
    assert_int_equal(s.total_out, n);
    inflateEnd(&s);
    assert_memory_equal(back, bytes, n);
    free(back);
    free(out);
    return plan.bytes;
}

static void few_bytes(void **state)
{
    uint8_t bytes[64];

    (void)state;
    for (size_t n = 1; n <= sizeof bytes; n++) {
        memset(bytes, 7, n);
        there_and_back(bytes, n);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(255 - i * 5);
        there_and_back(bytes, n);
    }
}

/* Each value twice as often as the next one: a tree without a limit would be 21 deep. */
static void deep_trees(void **state)
{
    static uint8_t bytes[1 << 21];
    size_t n = 0;

    (void)state;
    for (int v = 0; v < 21; v++)
        for (size_t i = 0; i < (size_t)1 << (20 - v); i++)
            bytes[n++] = (uint8_t)(v * 11);
    assert_in_range(there_and_back(bytes, n), n / 4, n / 4 + n / 1000);
}

/* From all values alike often to few of them. */
static void sizes(void **state)
{
    static uint8_t bytes[100000];
    uint32_t random = 1;

    (void)state;
    for (int shift = 0; shift <= 8; shift++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = (uint8_t)(random >> 24 >> shift);
        }
        const size_t bits = shift < 7 ? 8 - (size_t)shift : 1, least = bits * sizeof bytes / 8;

        /* The end of the block takes a code, too, for which that of another value is a bit longer. */
        assert_in_range(there_and_back(bytes, sizeof bytes), least, least + (sizeof bytes >> (8 - shift)) / 8 + 400);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_bytes),
        cmocka_unit_test(deep_trees),
        cmocka_unit_test(sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
