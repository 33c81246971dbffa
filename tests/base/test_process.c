/* Who wrote something down, and does it live: this process, one that has ended, a number given again, another host. */
#include "base/process.h"

#include "tests/check.h"

#include <stdio.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_judge(void **state)
{
    struct process self, other;

    (void)state;
    process_self(&self);
    assert_int_equal(self.pid, getpid());
    assert_true(self.start > 0);
    assert_int_equal(process_judge(&self), PROCESS_LIVES);
    other = self;
    other.start++; /* the number was given again */
    assert_int_equal(process_judge(&other), PROCESS_GONE);
    other.start = -1;
    assert_int_equal(process_judge(&other), PROCESS_LIVES);
    other.boot[0] ^= 1; /* before the host was started again */
    assert_int_equal(process_judge(&other), PROCESS_GONE);
    other.boot[0] = '\0';
    assert_int_equal(process_judge(&other), PROCESS_LIVES);
    snprintf(other.host, sizeof other.host, "elsewhere.example");
    assert_int_equal(process_judge(&other), PROCESS_ELSEWHERE);
}

static void test_ended(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(0);
    waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT);
    assert_int_equal(process_lives(child, -1), 0); /* not waited for yet */
    waitpid(child, NULL, 0);
    assert_int_equal(process_lives(child, -1), 0);
    assert_int_equal(process_lives(0, -1), 0);
    assert_int_equal(process_lives(-1, -1), 0);
    assert_int_equal(process_lives((int64_t)1 << 40, -1), 0);
}

static void test_name(void **state)
{
    char name[PROCESS_NAME_MAX];

    (void)state;
    prctl(PR_SET_NAME, "a (name) 1", 0UL, 0UL, 0UL);
    assert_int_equal(process_name(getpid(), name), 0);
    assert_string_equal(name, "a (name) 1");
    assert_int_equal(process_name((int64_t)1 << 40, name), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_judge), cmocka_unit_test(test_ended),
                                        cmocka_unit_test(test_name) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
