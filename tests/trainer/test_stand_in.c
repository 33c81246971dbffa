/* A launcher that kills ranks, what it starts, and the rank behind that: how both end, and what they hold. */
#include "trainer/collective/stand_in.h"

#include "base/process.h"
#include "tests/check.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FOREVER = -1, STATUS = 42, GONE, LIVES, ALONE };

static struct seen {
    pid_t started, rank, launcher; /* the last one as the rank knows it */
    int output;                    /* of what was started, a pipe's reading end */
    int pmi;                       /* the proxy's end of its connection */
} * seen;                          /* by all processes */

static void wait_until_readable(int fd)
{
    struct pollfd p = { fd, POLLIN, 0 };

    while (poll(&p, 1, FOREVER) < 0)
        ;
}

static int is_readable(int fd)
{
    struct pollfd p = { fd, POLLIN, 0 };

    return poll(&p, 1, 0) > 0;
}

static void say_ready(void)
{
    if (write(1, "", 1) != 1)
        _exit(99);
}

/* ---- what ranks do ----------------------------------------------------------------------------------------------- */

static void end_with_status(void)
{
    _exit(STATUS);
}

static void die(void)
{
    raise(SIGKILL);
}

static void heard(int number)
{
    _exit(number == SIGTERM ? STATUS : 99);
}

static void wait_for_a_signal(void)
{
    signal(SIGTERM, heard);
    say_ready();
    for (;;)
        pause();
}

/* Keeps no output, nor a connection: its stand-in has that. */
static void close_all(void)
{
    signal(SIGTERM, heard);
    say_ready();
    close(atoi(getenv("PMI_FD")));
    close(1);
    for (;;)
        pause();
}

static void outlive(void)
{
    say_ready();
    wait_until_readable(stand_in_watched());
    _exit(stand_in_launcher_gone(0) ? GONE : LIVES);
}

static void wait_for_both(void)
{
    seen->launcher = stand_in_launcher();
    say_ready();
    wait_until_readable(stand_in_watched());
    _exit(stand_in_launcher_gone(FOREVER) && stand_in_launcher() == 0 ? GONE : LIVES);
}

static void follow(void)
{
    signal(SIGTERM, heard);
    raise(SIGTSTP); /* as if it were too late: its stand-in goes on already */
    say_ready();
    for (;;) {
        stand_in_follow();
        sched_yield();
    }
}

/* So that only what happens to its stand-in lets it go on. */
static void stop(void)
{
    raise(SIGSTOP);
    wait_for_both();
}

static void say_alone(void)
{
    _exit(getpid() == seen->started && stand_in_watched() < 0 ? ALONE : LIVES);
}

/* ---- who starts them --------------------------------------------------------------------------------------------- */

static _Noreturn void be_proxy(const char *name, void (*rank)(void), int output, int pmi)
{
    char number[16];
    int status;

    prctl(PR_SET_NAME, name, 0UL, 0UL, 0UL);
    if ((seen->started = fork()) == 0) {
        seen->started = getpid();
        setsid(); /* as the proxy does it */
        dup2(output, 1);
        close(output);
        snprintf(number, sizeof number, "%d", pmi);
        setenv("PMI_FD", number, 1);
        stand_in_start(NULL);
        seen->rank = getpid();
        rank();
        _exit(99);
    }
    close(output);
    close(pmi);
    if (waitpid(seen->started, &status, 0) != seen->started)
        _exit(99);
    if (WIFSIGNALED(status)) {
        prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL);
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

/* The proxy, which ends as what it has started. ready: returns once the rank has said that it is. */
static pid_t start(const char *name, void (*rank)(void), int ready)
{
    int output[2], pmi[2];
    pid_t proxy;
    char byte;

    assert_int_equal(pipe(output), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pmi), 0);
    seen->rank = 0;
    if ((proxy = fork()) == 0)
        be_proxy(name, rank, output[1], pmi[1]);
    close(output[1]);
    close(pmi[1]);
    seen->output = output[0];
    seen->pmi = pmi[0];
    if (ready)
        assert_int_equal(read(output[0], &byte, 1), 1);
    return proxy;
}

/* How that process has ended, as a shell says it. A rank is this process's child once its stand-in has ended. */
static int end_of(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) != pid)
        sched_yield();
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void close_ends(void)
{
    close(seen->output);
    close(seen->pmi);
    assert_int_equal(waitpid(-1, NULL, 0), -1); /* nothing is left */
}

static void test_ends_as_the_rank(void **state)
{
    (void)state;
    assert_int_equal(end_of(start("hydra_pmi_proxy", end_with_status, 0)), STATUS);
    assert_int_not_equal(seen->rank, seen->started);
    close_ends();
    assert_int_equal(end_of(start("hydra_pmi_proxy", die, 0)), 128 + SIGKILL);
    close_ends();
}

static void test_passes_signals(void **state)
{
    static const char *const launchers[] = { "hydra_pmi_proxy", "prterun", "prted" };

    (void)state;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const pid_t launcher = start(launchers[i], wait_for_a_signal, 1);

        assert_int_equal(kill(-seen->started, SIGTERM), 0); /* its group, as the launcher does it */
        assert_int_equal(end_of(launcher), STATUS);
        assert_int_not_equal(seen->rank, seen->started);
        close_ends();
    }
}

static void test_holds_no_output(void **state)
{
    const pid_t proxy = start("hydra_pmi_proxy", close_all, 1);
    char byte;

    (void)state;
    assert_int_equal(read(seen->output, &byte, 1), 0);
    assert_int_equal(is_readable(seen->pmi), 0);
    assert_int_equal(kill(seen->started, SIGTERM), 0);
    assert_int_equal(end_of(proxy), STATUS);
    assert_int_equal(read(seen->pmi, &byte, 1), 0);
    close_ends();
}

/* mpirun was killed: the proxy kills what it has started, and ends. */
static void test_outlives_the_launcher(void **state)
{
    const pid_t proxy = start("hydra_pmi_proxy", wait_for_both, 1);

    (void)state;
    assert_int_equal(kill(-seen->started, SIGKILL), 0);
    assert_int_equal(end_of(proxy), 128 + SIGKILL);
    assert_int_equal(end_of(seen->rank), GONE);
    assert_int_equal(seen->launcher, proxy);
    close_ends();
}

/* A rank that is stopped has to see that, too. */
static void test_goes_on(void **state)
{
    const pid_t proxy = start("hydra_pmi_proxy", stop, 0);

    (void)state;
    while (seen->rank <= 0 || !process_stopped(seen->rank))
        sched_yield();
    assert_int_equal(kill(-seen->started, SIGKILL), 0);
    assert_int_equal(end_of(proxy), 128 + SIGKILL);
    assert_int_equal(end_of(seen->rank), GONE);
    close_ends();
}

static void test_follows(void **state)
{
    const pid_t launcher = start("prterun", follow, 1);

    (void)state;
    assert_int_equal(kill(-seen->started, SIGSTOP), 0);
    while (!process_stopped(seen->rank))
        sched_yield();
    assert_int_equal(kill(-seen->started, SIGCONT), 0);
    while (process_stopped(seen->rank))
        sched_yield();
    assert_int_equal(kill(seen->started, SIGTERM), 0);
    assert_int_equal(end_of(launcher), STATUS);
    close_ends();
}

/* The proxy itself was killed. */
static void test_outlives_the_proxy(void **state)
{
    const pid_t proxy = start("hydra_pmi_proxy", outlive, 1);

    (void)state;
    assert_int_equal(kill(proxy, SIGKILL), 0);
    assert_int_equal(end_of(proxy), 128 + SIGKILL);
    assert_int_equal(end_of(seen->started), 128 + SIGKILL);
    assert_int_equal(end_of(seen->rank), GONE);
    close_ends();
}

/* It kills what it has started, and lives. */
static void test_knows_that_the_launcher_lives(void **state)
{
    const pid_t proxy = start("hydra_pmi_proxy", outlive, 1);

    (void)state;
    assert_int_equal(kill(proxy, SIGSTOP), 0);
    assert_int_equal(kill(-seen->started, SIGKILL), 0);
    assert_int_equal(end_of(seen->rank), LIVES);
    assert_int_equal(kill(proxy, SIGCONT), 0);
    assert_int_equal(end_of(proxy), 128 + SIGKILL);
    close_ends();
}

static void test_is_for_that_proxy_alone(void **state)
{
    (void)state;
    assert_int_equal(end_of(start("mpirun", say_alone, 0)), ALONE);
    close_ends();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_as_the_rank),
        cmocka_unit_test(test_passes_signals),
        cmocka_unit_test(test_holds_no_output),
        cmocka_unit_test(test_outlives_the_launcher),
        cmocka_unit_test(test_outlives_the_proxy),
        cmocka_unit_test(test_knows_that_the_launcher_lives),
        cmocka_unit_test(test_is_for_that_proxy_alone),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_follows),
    };

    prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
