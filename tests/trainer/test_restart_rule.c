/* Which ends of a job are failures, and when a job that fails is given up. */
#include "trainer/launch/launch.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static enum restart_verdict of(int status, int asked, const char *state, const char *signal)
{
    struct training_state s = { .state = "" };
    struct restart_facts f = { status, asked, state ? &s : NULL, 0, 3, 1 };

    snprintf(s.state, sizeof s.state, "%s", state ? state : "");
    snprintf(s.signal, sizeof s.signal, "%s", signal);
    return restart_rule(&f);
}

static void test_failures(void **state)
{
    (void)state;
    assert_int_equal(of(1, 0, "failed", ""), RESTART_AGAIN);
    assert_int_equal(of(137, 0, "failed", ""), RESTART_AGAIN);
    assert_int_equal(of(139, 0, "running", ""), RESTART_AGAIN);
    assert_int_equal(of(1, 0, "running", ""), RESTART_AGAIN);
    assert_int_equal(of(1, 0, NULL, ""), RESTART_AGAIN);
    assert_int_equal(of(1, 0, "stopped", ""), RESTART_AGAIN);          /* mpirun was killed */
    assert_int_equal(of(137, 0, "stopped", "SIGTERM"), RESTART_AGAIN); /* mpirun ended the others, who saved */
}

static void test_not_failures(void **state)
{
    (void)state;
    assert_int_equal(of(0, 0, "finished", ""), RESTART_NOT_WANTED);
    assert_int_equal(of(2, 0, NULL, ""), RESTART_NOT_WANTED);
    assert_int_equal(of(2, 0, "failed", ""), RESTART_NOT_WANTED);
    assert_int_equal(of(127, 0, NULL, ""), RESTART_NOT_WANTED);
    assert_int_equal(of(130, 0, "stopped", "SIGINT"), RESTART_NOT_WANTED);
    assert_int_equal(of(143, 0, "stopped", "SIGTERM"), RESTART_NOT_WANTED);
    assert_int_equal(of(1, 0, "stopped", "SIGTERM"), RESTART_NOT_WANTED); /* a signal to mpirun */
    assert_int_equal(of(1, 0, "finished", ""), RESTART_NOT_WANTED);       /* a point of a curve was lost */
    assert_int_equal(of(1, 15, "failed", ""), RESTART_NOT_WANTED);
    assert_int_equal(of(137, 2, NULL, ""), RESTART_NOT_WANTED);
}

static enum restart_verdict after(int64_t done, int64_t most, int progress)
{
    const struct restart_facts f = { 137, 0, NULL, done, most, progress };

    return restart_rule(&f);
}

static void test_given_up(void **state)
{
    (void)state;
    assert_int_equal(after(0, 2, 1), RESTART_AGAIN);
    assert_int_equal(after(0, 2, 0), RESTART_AGAIN); /* forgiven once */
    assert_int_equal(after(1, 2, 0), RESTART_NO_PROGRESS);
    assert_int_equal(after(1, 2, 1), RESTART_AGAIN);
    assert_int_equal(after(2, 2, 1), RESTART_ENOUGH);
    assert_int_equal(after(2, 2, 0), RESTART_NO_PROGRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_failures), cmocka_unit_test(test_not_failures),
                                        cmocka_unit_test(test_given_up) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
