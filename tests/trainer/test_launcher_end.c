/* Launchers that end by themselves, when they are asked, when they are asked again, and not at all; and what is none. */
#include "trainer/collective/launcher_end.h"

#include "tests/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEVER = 3600000 };

static volatile sig_atomic_t asked;
static const char *sessions; /* the directory of sessions; NULL: there are none */

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
    if (sessions) {
        char session[64], file[100];

        snprintf(session, sizeof session, "%s/pid.%ld", sessions, (long)getpid());
        snprintf(file, sizeof file, "%s/below", session);
        if (mkdir(session, 0700) < 0 || mkdir(file, 0700) < 0)
            _exit(99);
        strcat(file, "/contact.txt");
        close(open(file, O_CREAT | O_WRONLY, 0600));
        setenv("PMIX_SERVER_TMPDIR", session, 1);
    }
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

/* What is left of a directory besides "." and "..", and `but`; -1: it is gone. */
static int entries_of(const char *path, const char *but)
{
    DIR *d = opendir(path);
    int count = 0;

    if (!d)
        return -1;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && strcmp(e->d_name, but) != 0;
    closedir(d);
    return count;
}

/* The status of that launcher's end, as a shell has it; after that, nobody who held its output is left, nor any process
 * that it or its rank has left behind: this process is the one that waits for them. */
static int end_of(const char *name, int milliseconds, int times)
{
    int ends[2], status;
    char byte;
    pid_t launcher;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL), 0);
    assert_int_equal(pipe(ends), 0);
    if ((launcher = fork()) == 0)
        launch(name, milliseconds, times);
    assert_true(launcher > 0);
    close(ends[1]);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    while (waitpid(-1, NULL, 0) > 0)
        ;
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

/* What it leaves is removed with the directory of sessions, unless that has others, or the session is not its own. */
static void test_sessions(void **state)
{
    char top[] = "/tmp/launcher_end.XXXXXX", other[64];

    (void)state;
    assert_non_null(mkdtemp(top));
    sessions = top;
    snprintf(other, sizeof other, "%s/pid.0", top);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(end_of("mpirun", 0, 3), 128 + SIGKILL);
    assert_int_equal(entries_of(top, "pid.0"), 0);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(end_of("mpirun", 0, 1), 1);
    assert_int_equal(entries_of(top, ""), -1);
    assert_int_equal(mkdir(top, 0700), 0);
    assert_int_equal(end_of("mpirun", NEVER, 0), 0); /* by itself, as when it crashes */
    assert_int_equal(entries_of(top, ""), -1);
    sessions = NULL;
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
        cmocka_unit_test(test_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
