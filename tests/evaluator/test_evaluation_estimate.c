/* When an evaluator will be done: a table of what is known. */
#include "evaluator/record/evaluation_estimate.h"

#include "tests/check.h"

static void test_estimates(void **state)
{
    static const struct {
        struct evaluation_facts facts;
        double seconds;
    } cases[] = {
        /* Nothing is known; the training is over and nothing waits. */
        { { .newest_step = -1, .last_step = -1 }, -1 },
        { { .newest_step = 500, .last_step = 500 }, 0 },
        { { .newest_step = 300, .last_step = 500, .training_over = 1 }, 0 },
        /* It is over, and some wait: one after the other, or several at a time. */
        { { .waiting = 4, .each = 2, .training_over = 1 }, 8 },
        { { .waiting = 4, .each = 2, .rate = 2, .training_over = 1 }, 2 },
        { { .waiting = 4, .training_over = 1 }, -1 },
        { { .waiting = 4, .each = 2, .rate = 0.25, .training_over = 1 }, 16 }, /* others are served as well */
        { { .waiting = 1, .each = 2, .rate = 0.25, .training_over = 1 }, 2 },  /* there was nothing to do */
        /* 300 steps at 10 a second, the newest 5 s old: then one more evaluation. */
        { { .each = 2,
            .steps_per_second = 10,
            .steps_between = 100,
            .newest_age = 5,
            .newest_step = 200,
            .last_step = 500 },
          27 },
        { { .each = 2,
            .steps_per_second = 10,
            .steps_between = 100,
            .newest_age = 1000,
            .newest_step = 200,
            .last_step = 500 },
          6 },
        /* Evaluations are slower than the training: 3 more and 5 that wait, at 20 s each. */
        { { .waiting = 5,
            .each = 20,
            .steps_per_second = 10,
            .steps_between = 100,
            .newest_age = 5,
            .newest_step = 200,
            .last_step = 500 },
          160 },
        /* How fast it trains, or where it ends, is not known. */
        { { .each = 2, .newest_step = 200, .last_step = 500 }, -1 },
        { { .waiting = 1, .each = 2, .steps_per_second = 10, .newest_step = 200, .last_step = -1 }, -1 },
        /* Beyond its end already, as after a rollback. */
        { { .waiting = 1, .each = 2, .steps_per_second = 10, .newest_step = 700, .last_step = 500 }, 2 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double seconds = evaluation_estimate(&cases[i].facts);

        if (seconds < cases[i].seconds - 1e-9 || seconds > cases[i].seconds + 1e-9)
            fail_msg("case %zu: %g, not %g", i, seconds, cases[i].seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_estimates) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
