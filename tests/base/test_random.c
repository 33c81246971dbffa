/* Counter-based randomness: the published Philox values, independence of order, rough uniformity. */

#include "base/random.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

static void test_philox(void **state)
{
    /* Known answers that come with the authors' library (Random123, philox4x32 with 10 rounds). */
    static const struct {
        uint32_t key[2], counter[4], wanted[4];
    } cases[] = {
        { { 0, 0 }, { 0, 0, 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    };
    uint32_t got[4];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_philox(cases[i].key, cases[i].counter, got);
        assert_memory_equal(got, cases[i].wanted, sizeof got);
    }
}

/* Each of (seed, purpose, step, index) matters, and nothing else does. */
static void test_function_of_its_place(void **state)
{
    struct random base, other;
    uint32_t first[16], again[16];

    (void)state;
    for (int which = 0; which < 5; which++) {
        random_init(&base, 7, RANDOM_SHUFFLE, 1, 2);
        random_init(&other, which == 1 ? 8 : 7, which == 2 ? RANDOM_AUGMENT : RANDOM_SHUFFLE,
                    which == 3 ? (uint64_t)1 << 32 | 1 : 1, which == 4 ? (uint64_t)1 << 32 | 2 : 2);
        for (int i = 0; i < 16; i++) {
            first[i] = random_u32(&base);
            again[i] = random_u32(&other);
        }
        assert_int_equal(memcmp(first, again, sizeof first) == 0, which == 0);
    }
}

static void test_distributions(void **state)
{
    enum { DRAWS = 200000, BINS = 10 };
    double sum = 0, squares = 0, low = 1, high = 0;
    int bins[BINS] = { 0 }, below[7] = { 0 };
    struct random r;

    (void)state;
    random_init(&r, 42, RANDOM_TEST, 0, 0);
    for (int i = 0; i < DRAWS; i++) {
        double u = random_uniform(&r);

        assert_true(u >= 0 && u < 1);
        bins[(int)(u * (double)BINS)]++;
        low = fmin(low, u);
        high = fmax(high, u);
        below[random_below(&r, 7)]++;
    }
    assert_true(low < 1e-4 && high > 1 - 1e-4);
    /* Six standard deviations: sqrt(n p (1 - p)) is 134 for tenths, 157 for sevenths. */
    for (int i = 0; i < BINS; i++)
        assert_in_range(bins[i], DRAWS / BINS - 805, DRAWS / BINS + 805);
    for (int i = 0; i < 7; i++)
        assert_in_range(below[i], DRAWS / 7 - 940, DRAWS / 7 + 940);
    for (int i = 0; i < DRAWS; i++) {
        double x = random_normal(&r);

        assert_true(isfinite(x));
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / (double)DRAWS) < 6 / sqrt(DRAWS));
    assert_true(fabs(squares / (double)DRAWS - 1) < 6 * sqrt(2.0 / (double)DRAWS));
    assert_int_equal(random_below(&r, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_function_of_its_place),
        cmocka_unit_test(test_distributions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
