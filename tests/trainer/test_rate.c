/* Steps a second and time to go, of quick steps and of slow ones. */
#include "trainer/timing/rate.h"

#include "tests/check.h"

#include <math.h>

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) < 1e-9 * wanted + 1e-12))
        fail_msg("%.17g, wanted %.17g", value, wanted);
}

static void test_nothing_yet(void **state)
{
    struct rate r;

    (void)state;
    rate_start(&r, 700, 1000);
    assert_true(rate_per_second(&r) == 0);
    assert_true(isinf(rate_left(&r, 1000, 1005)));
}

static void test_quick_steps(void **state)
{
    struct rate r;
    int64_t step = 700;

    (void)state;
    rate_start(&r, step, 1000);
    rate_step(&r, ++step, 1000.5); /* 2 a second from the first on */
    near(rate_per_second(&r), 2);
    for (int i = 2; i <= 60; i++)
        rate_step(&r, ++step, 1000 + 0.5 * i);
    near(rate_per_second(&r), 2);
    near(rate_left(&r, 860, 1030), 50);
    near(rate_left(&r, 860, 1030.5), 49.5); /* time goes on within a step */
    for (int i = 1; i <= 60; i++)           /* four times as fast: so after two times ten seconds it says */
        rate_step(&r, step + i, 1030 + 0.125 * i);
    near(rate_per_second(&r), 2);
    for (int i = 61; i <= 160; i++)
        rate_step(&r, step + i, 1030 + 0.125 * i);
    near(rate_per_second(&r), 8);
}

static void test_slow_steps(void **state)
{
    struct rate r;

    (void)state;
    rate_start(&r, 0, 0);
    rate_step(&r, 1, 30);
    near(rate_per_second(&r), 1 / 30.0);
    near(rate_left(&r, 3, 40), 50);
    near(rate_left(&r, 3, 1000), 0); /* it should have ended long ago */
    rate_step(&r, 2, 90);
    near(rate_per_second(&r), 1 / 60.0);
    rate_step(&r, 3, 91); /* of one quick step nobody concludes much */
    near(rate_per_second(&r), 1 / 60.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_yet),
        cmocka_unit_test(test_quick_steps),
        cmocka_unit_test(test_slow_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
