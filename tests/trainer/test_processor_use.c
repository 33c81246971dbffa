/* The share of the processors that other programs use: from texts of /proc/stat, and of this machine. */
#include "trainer/timing/processor_use.h"

#include "tests/check.h"

#include <math.h>

static const char text[] = "cpu  9 9 9 9 9 9 9 9 9 9\n"
                           "cpu0 100 20 30 5000 700 4 5 6 90 1\n"
                           "cpu1 1000 0 0 5000 0 0 0 0 0 0\n"
                           "cpu10 7 0 0 1 1 0 0 1 0 0\n"
                           "intr 5 0 0\n"
                           "cpu11 7 0 0"; /* cut off */

static int has(int processor, const void *wanted)
{
    return processor == *(const int *)wanted;
}

static void test_text(void **state)
{
    double ticks;

    (void)state;
    assert_int_equal(processor_use_sum(text, NULL, NULL, &ticks), 3);
    assert_true(ticks == 165 + 1000 + 8);
    assert_int_equal(processor_use_sum(text, has, &(int){ 10 }, &ticks), 1);
    assert_true(ticks == 8);
    assert_int_equal(processor_use_sum("", NULL, NULL, &ticks), 0);
    assert_true(ticks == 0);
}

static void test_share(void **state)
{
    const struct processor_use before = { 100, 10, 50, 2 };
    struct processor_use after = { 112, 16, 60, 2 };

    (void)state;
    assert_true(fabs(processor_use_others(&before, &after) - 0.3) < 1e-12);
    after.own = 30; /* clocks do not agree to a tick */
    assert_true(processor_use_others(&before, &after) == 0);
    after.all = 1000;
    assert_true(processor_use_others(&before, &after) == 1);
    assert_true(processor_use_others(&before, &before) == -1); /* no time has passed */
    after.processors = 0;
    assert_true(processor_use_others(&before, &after) == -1);
}

/* Here: what this process uses is in both numbers. */
static void test_this_machine(void **state)
{
    struct processor_use before, after;
    double share;

    (void)state;
    processor_use_now(&before);
    if (before.processors == 0)
        skip();
    do {
        processor_use_now(&after);
    } while (after.own < before.own + 0.2);
    share = processor_use_others(&before, &after);
    assert_true(share >= 0 && share <= 1 && after.processors == before.processors);
    assert_true(after.all - before.all > 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
