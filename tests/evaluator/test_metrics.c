/* Counts and sums of an evaluation. */
#include "evaluator/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_metrics(void **state)
{
    struct metrics m;

    (void)state;
    metrics_init(&m, 0.25);
    assert_true(isnan(metrics_precision(&m)) && isnan(metrics_loss(&m)));
    metrics_add(&m, 128, 100, 64);
    metrics_add(&m, 72, 50, 136); /* the last batch is short, and its examples weigh no more than the others */
    assert_true(metrics_precision(&m) == 0.75);
    assert_true(metrics_mean_cross_entropy(&m) == 1.0);
    assert_true(metrics_loss(&m) == 1.25);
    metrics_add(&m, 1, 0, NAN);
    assert_true(isnan(metrics_loss(&m)) && !isnan(metrics_precision(&m)));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_metrics) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
