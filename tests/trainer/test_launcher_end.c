/* Launchers that end by themselves, when they are asked, when they are asked again, and not at all; and what is none. */
#include "trainer/collective/launcher_end.h"

#include "tests/check.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEVER = 3600000 };

static volatile sig_atomic_t asked;

static void count(int number)
{
    (void)number;
    asked++;
}

/* A launcher whose only rank fails at once: it ends with the number of times that it was asked to end, once that is
 * `times`. */
static _Noreturn void launch(const char *name, int milliseconds, int times)
{
    sigset_t term, before;
    pid_t rank;

    prctl(PR_SET_NAME, name, 0UL, 0UL, 0UL);
    signal(SIGTERM, count);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    if ((rank = fork()) == 0) {
        launcher_end_later(milliseconds);
        _exit(0);
    }
    while (waitpid(rank, NULL, 0) != rank)
        ;
    while (asked < times)
        sigsuspend(&before);
    _exit(asked);
}

/* The status of that launcher's end, as a shell has it; after that, nobody who held its output is left. */
static int end_of(const char *name, int milliseconds, int times)
{
    int ends[2], status;
    char byte;
    pid_t launcher;

    assert_int_equal(pipe(ends), 0);
    if ((launcher = fork()) == 0)
        launch(name, milliseconds, times);
    assert_true(launcher > 0);
    close(ends[1]);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_ended(void **state)
{
    (void)state;
    assert_int_equal(end_of("mpirun", 0, 1), 1);
    assert_int_equal(end_of("mpirun", 0, 2), 2);
    assert_int_equal(end_of("orted", 0, 3), 128 + SIGKILL);
}

/* By itself: nobody asks it, and its output is not held by who waits for it. */
static void test_left_alone(void **state)
{
    (void)state;
    assert_int_equal(end_of("mpirun", NEVER, 0), 0);
    assert_int_equal(end_of("slurmstepd", 0, 0), 0);
}

static void test_names(void **state)
{
    (void)state;
    assert_true(launcher_end_may("mpirun") && launcher_end_may("orted") && launcher_end_may("prted"));
    assert_false(launcher_end_may("slurmstepd") || launcher_end_may("bash") || launcher_end_may("") ||
                 launcher_end_may("mpirun2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
