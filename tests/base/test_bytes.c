#include "base/bytes.h"

#include "tests/check.h"

#include <stdlib.h>

/* Every length from and to every place in a word, in memory of its own, so that a sanitizer sees one byte too many. */
static void copies_all_lengths(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 100; n++)
        for (size_t shift = 0; shift < 8; shift++) {
            uint8_t *from = malloc(n + shift + 1), *to = malloc(n + shift + 1);

            assert_true(from && to);
            for (size_t i = 0; i < n + shift + 1; i++) {
                from[i] = (uint8_t)(i * 7 + 1);
                to[i] = 0;
            }
            bytes_copy(to + shift, from + shift, n);
            assert_memory_equal(to + shift, from + shift, n);
            assert_int_equal(to[n + shift], 0);
            for (size_t i = 0; i < shift; i++)
                assert_int_equal(to[i], 0);
            free(from);
            free(to);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(copies_all_lengths) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
