/* What counts as failed and gone after a sequence of lines of the ledger. */
#include "evaluator/record/ledger.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static void test_newest_counts(void **state)
{
    static const struct {
        const char *lines; /* letter of the name, step, d(one) f(ailed) g(one) u(nreadable), or r(ead) again */
        size_t failed, gone, failed_by_step, gone_by_step;
    } cases[] = {
        { "", 0, 0, 0, 0 },
        { "a1d b2d", 0, 0, 0, 0 },
        { "a1f b2d", 1, 0, 1, 0 },
        { "a1f a1d", 0, 0, 0, 0 },
        { "a1f a2d", 0, 0, 1, 0 }, /* the step that is in it, and not the name's; with --step-from another one */
        { "a1f a1f a1f", 1, 0, 1, 0 },
        { "a1f a1g", 0, 1, 0, 1 },
        { "a1g a1d a1f", 1, 0, 1, 0 },
        { "a1d a1f", 1, 0, 1, 0 },
        { "b1f a1f c1g b1d", 1, 1, 1, 1 },
        { "a1f a2f a3d", 0, 0, 2, 0 },
        { "a-f a3d", 0, 0, 0, 0 }, /* failed before its step was known */
        { "a-f b3d", 1, 0, 1, 0 },
        { "a1d a1u", 1, 0, 1, 0 },
        { "a1d a1u a1r", 0, 0, 0, 0 },
        { "a1d a1u b1r", 1, 0, 1, 0 },
        { "a1f a1r", 1, 0, 1, 0 },
        { "a1f a1u a1r", 1, 0, 1, 0 }, /* it had failed before */
        { "a1u a1f a1r", 1, 0, 1, 0 },
        { "a1d a-u a2u b1u a1r", 1, 0, 1, 0 },
        { "a1u a1g a1r", 0, 0, 0, 0 },
        { "c3f b2f a1f b2d a1d", 1, 0, 1, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int by_step = 0; by_step < 2; by_step++) {
            struct outcomes o;

            outcomes_init(&o, by_step);
            for (const char *p = cases[i].lines; *p; p += p[3] ? 4 : 3) {
                struct ledger_record r = { .checkpoint = { { *p }, p[1] == '-' ? -1 : p[1] - '0', 0, 0, 0 } };

                r.status = p[2] == 'd' ? LEDGER_DONE : p[2] == 'g' ? LEDGER_GONE : LEDGER_FAILED;
                r.checkpoint.has_digest = p[2] == 'd' || p[2] == 'f';
                if (p[2] == 'r')
                    outcomes_read(&o, r.checkpoint.name);
                else
                    assert_int_equal(outcomes_note(&o, &r, NULL), OK);
            }
            if (outcomes_count(&o, LEDGER_FAILED) != (by_step ? cases[i].failed_by_step : cases[i].failed) ||
                outcomes_count(&o, LEDGER_GONE) != (by_step ? cases[i].gone_by_step : cases[i].gone))
                fail_msg("%s, by step %d: %zu failed, %zu gone", cases[i].lines, by_step,
                         outcomes_count(&o, LEDGER_FAILED), outcomes_count(&o, LEDGER_GONE));
            outcomes_release(&o);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_newest_counts) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
