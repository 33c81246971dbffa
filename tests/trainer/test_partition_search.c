/* The search for the number of parts, with made times. */
#include "tests/check.h"
#include "trainer/server/partition_search.h"

#include <math.h>

/* Times that follow the model exactly: c + b / p + a (p - 1). */
struct costs {
    double a, b, c;
    int first, most, wanted, tried[12];
};

static double time_of(const struct costs *k, int p)
{
    return k->c + k->b / p + k->a * (p - 1);
}

static void test_made_times(void **state)
{
    static const struct costs cases[] = {
        /* sqrt(b / a) = 8 between 2 and 16 */
        { 0.001, 0.064, 0.1, 2, 1000, 8, { 2, 4, 8, 16, 1 } },
        /* sqrt(88) = 9.4: the fit finds what was never tried */
        { 0.001, 0.088, 0.1, 2, 1000, 9, { 2, 4, 8, 16, 1 } },
        /* one part is best: 4 is slower than 2, then down */
        { 0.01, 0, 0.1, 2, 1000, 1, { 2, 4, 1 } },
        { 0.01, 0.001, 0.1, 8, 1000, 1, { 8, 16, 4, 2, 1 } },
        /* as many as there are rows */
        { 0, 1, 0.1, 2, 20, 16, { 2, 4, 8, 16, 1 } },
        { 0, 1, 0.1, 3, 5, 3, { 3, 1 } },
        { 0, 1, 0.1, 30, 5, 5, { 5, 2 } },
        /* far apart */
        { 1e-9, 10, 1, 1, 100000, 65536, { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct costs *k = &cases[i];
        struct partition_search s;

        partition_search_init(&s, k->first, k->most);
        while (!s.decided) {
            if (s.count < 12 && k->tried[s.count])
                assert_int_equal(s.partitions, k->tried[s.count]);
            assert_true(s.partitions >= 1 && s.partitions <= k->most);
            partition_search_next(&s, time_of(k, s.partitions));
        }
        if (s.partitions != k->wanted)
            fail_msg("case %zu: %d parts, not %d", i, s.partitions, k->wanted);
    }
}

/* Any times: it ends, within what was tried. */
static void test_it_ends(void **state)
{
    static const double odd[] = { 0, 1, 1e-300, 1e300, 0.5, 0.25, NAN, INFINITY };

    (void)state;
    for (unsigned seed = 0; seed < 4096; seed++) {
        struct partition_search s;
        unsigned draw = seed;

        partition_search_init(&s, 1 + (int)(seed % 7), 1 + (int)(seed % 5000));
        while (!s.decided) {
            assert_true(s.count < PARTITION_SEARCH_POINTS);
            draw = draw * 1103515245u + 12345u;
            partition_search_next(&s, odd[(draw >> 16) % 8]);
        }
        assert_true(s.partitions >= 1 && s.partitions <= 1 + (int)(seed % 5000));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_times),
        cmocka_unit_test(test_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
