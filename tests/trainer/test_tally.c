/* What a step amounts to: added in the workers' order, counted or left, the last one or not. */
#include "trainer/collective/tally.h"

#include "tests/check.h"

#include <signal.h>

static void test_sum(void **state)
{
    /* In this order the ones are lost beside 1e16; in another they would not be. */
    const struct tally_part parts[] = { { { 1e16, 0.5, 1, 8 }, 0, 0, 0 },
                                        { { 1, 0.25, 2, 16 }, 0, TALLY_SAVE, 0 },
                                        { { 1, 0.125, 4, 32 }, 0, 0, 0 } };
    const struct tally t = tally_sum(parts, 3, 5, 100);

    (void)state;
    assert_true(t.score.loss == 1e16);
    assert_true(t.score.weight == 0.875);
    assert_int_equal(t.score.hits, 7);
    assert_int_equal(t.score.units, 56);
    assert_int_equal(t.flags, TALLY_SAVE);
    assert_int_equal(t.global_step, 6);
    assert_int_equal(t.more, 1);
}

static void test_more(void **state)
{
    static const struct {
        uint32_t flags;
        int64_t step, after;
        int more;
    } rows[] = {
        { 0, 8, 9, 1 },
        { 0, 9, 10, 0 },
        { 0, 10, 11, 0 },
        { TALLY_SAVE, 0, 1, 1 },
        { TALLY_STOP, 0, 1, 0 },
        { TALLY_BAD, 0, 1, 0 },
        { TALLY_TERM, 0, 1, 0 },
        { TALLY_INT, 0, 1, 0 },
        { TALLY_LEFT, 0, 0, 0 },
        { TALLY_LEFT, 9, 9, 0 },
        { TALLY_SAVE | TALLY_STOP, 0, 1, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tally_part part = { .flags = rows[i].flags };
        const struct tally t = tally_sum(&part, 1, rows[i].step, 10);

        assert_int_equal(t.global_step, rows[i].after);
        assert_int_equal(t.more, rows[i].more);
        assert_int_equal(t.flags, rows[i].flags);
    }
}

static void test_differs(void **state)
{
    const struct tally_part parts[] = {
        { .hash = 1, .hashed = 1 },
        { .hash = 2, .hashed = 1 },
        { .hash = 1, .hashed = 1 },
        { .hash = 3, .hashed = 1 },
    };
    const struct tally_part unhashed[] = { { .hash = 1 }, { .hash = 2 } };
    const struct tally_part half_hashed[] = { { .hash = 1, .hashed = 1 }, { .hash = 2 } };

    (void)state;
    assert_int_equal(tally_differs(parts, 1, 1), -1);
    assert_int_equal(tally_differs(parts, 4, 1), 1);
    assert_int_equal(tally_differs(parts, 4, 2), 3);
    assert_int_equal(tally_differs(parts, 3, 2), -1);
    assert_int_equal(tally_differs(unhashed, 2, 1), -1);
    assert_int_equal(tally_differs(half_hashed, 2, 1), -1);
}

static void test_signal(void **state)
{
    (void)state;
    assert_int_equal(tally_signal(0), 0);
    assert_int_equal(tally_signal(SIGINT), TALLY_INT);
    assert_int_equal(tally_signal(SIGTERM), TALLY_TERM);
    assert_int_equal(tally_signal(SIGXCPU), TALLY_TERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_differs),
        cmocka_unit_test(test_signal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
