/* The attempts of a command: pauses, retries, what the machine lacks, and ends, without commands or a clock. */
#include "evaluator/score/command_runner.h"

#include "tests/check.h"

#include <math.h>

static struct command_attempts started(double now)
{
    struct command_attempts a = { .number = 5, .stopping = 1, .retry_at = 1e9 }; /* of a checkpoint before it */

    command_attempts_start(&a);
    assert_true(command_attempts_due(&a, now) <= 0);
    assert_int_equal(command_attempts_step(&a, now), ATTEMPTS_BEGIN);
    assert_true(a.number == 1 && a.phase == ATTEMPTS_RUNNING);
    return a;
}

static void test_done(void **state)
{
    struct command_attempts a = started(100);

    (void)state;
    assert_int_equal(command_attempts_step(&a, 1e9), ATTEMPTS_LOOK);
    assert_true(isinf(command_attempts_due(&a, 1e9)));
    assert_int_equal(command_attempts_end(&a, ATTEMPT_DONE, 0, 3, 101), RUNNER_DONE);
    assert_int_equal(a.phase, ATTEMPTS_IDLE);
    assert_true(isinf(command_attempts_due(&a, 1e9)));
}

/* 1, 2, 4, ... seconds, 60 at most; then it has failed. */
static void test_pauses(void **state)
{
    static const double pauses[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
    const int64_t retries = sizeof pauses / sizeof *pauses;
    struct command_attempts a = started(100);
    double now = 100;

    (void)state;
    for (int64_t i = 0; i < retries; i++) {
        assert_int_equal(command_attempts_end(&a, ATTEMPT_FAILED, 0, retries, now), RUNNER_BUSY);
        assert_true(command_attempts_due(&a, now) == pauses[i]);
        assert_int_equal(command_attempts_step(&a, now + pauses[i] - 0.5), ATTEMPTS_SLEEP);
        now += pauses[i];
        assert_true(command_attempts_due(&a, now) <= 0);
        assert_int_equal(command_attempts_step(&a, now), ATTEMPTS_BEGIN);
        assert_int_equal(a.number, i + 2);
    }
    assert_int_equal(command_attempts_end(&a, ATTEMPT_FAILED, 0, retries, now), RUNNER_FAILED);
    assert_int_equal(a.phase, ATTEMPTS_IDLE);
    a = started(100);
    assert_int_equal(command_attempts_end(&a, ATTEMPT_FAILED, 0, 0, now), RUNNER_FAILED);
}

/* What no other attempt would do better; and a checkpoint that is gone, whatever failed. */
static void test_no_more(void **state)
{
    static const struct {
        enum command_outcome outcome;
        int gone;
        enum runner_state state;
    } cases[] = {
        { ATTEMPT_USELESS, 0, RUNNER_FAILED },  { ATTEMPT_USELESS, 1, RUNNER_GONE },
        { ATTEMPT_FAILED, 1, RUNNER_GONE },     { ATTEMPT_DONE, 1, RUNNER_DONE },
        { ATTEMPT_STOPPED, 0, RUNNER_STOPPED }, { ATTEMPT_STOPPED, 1, RUNNER_STOPPED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct command_attempts a = started(100);

        assert_int_equal(command_attempts_end(&a, cases[i].outcome, cases[i].gone, 3, 101), cases[i].state);
        assert_int_equal(a.phase, ATTEMPTS_IDLE);
    }
}

/* It is tried again each second, as often as it takes, and is no attempt: no retry is used up, no pause gets longer. */
static void test_lack(void **state)
{
    struct command_attempts a = started(100);

    (void)state;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(command_attempts_end(&a, ATTEMPT_LACK, 0, 1, 100 + i), RUNNER_BUSY);
        assert_true(command_attempts_due(&a, 100 + i) == 1);
        assert_int_equal(command_attempts_step(&a, 100 + i + 0.5), ATTEMPTS_SLEEP);
        assert_int_equal(command_attempts_step(&a, 101 + i), ATTEMPTS_BEGIN);
        assert_int_equal(a.number, 1);
    }
    assert_int_equal(command_attempts_end(&a, ATTEMPT_FAILED, 0, 1, 200), RUNNER_BUSY);
    assert_true(command_attempts_due(&a, 200) == 1);
}

/* Who waits gives up at once; who runs is looked at until it has ended. */
static void test_stopping(void **state)
{
    struct command_attempts a = started(100);

    (void)state;
    a.stopping = 1;
    assert_int_equal(command_attempts_step(&a, 100), ATTEMPTS_LOOK);
    a.stopping = 0;
    assert_int_equal(command_attempts_end(&a, ATTEMPT_FAILED, 0, 1, 100), RUNNER_BUSY);
    a.stopping = 1;
    assert_true(command_attempts_due(&a, 100) == 0);
    assert_int_equal(command_attempts_step(&a, 100), ATTEMPTS_GIVE_UP);
    assert_int_equal(a.phase, ATTEMPTS_IDLE);
    assert_int_equal(a.number, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_done), cmocka_unit_test(test_pauses),   cmocka_unit_test(test_no_more),
        cmocka_unit_test(test_lack), cmocka_unit_test(test_stopping),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
