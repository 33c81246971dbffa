#include "trainer/collective/stand_in.h"

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIVEN "EVALBOARD_STAND_IN"

/* The only globals: a process has one parent. Of pidfd_open(2), -1: none; and the launcher's pid. */
static int stand_in = -1, launcher_end = -1, launcher;

/* Leaves the connection of MPICH's proxy with the rank, which takes its end before this process's for a failure of
 * another kind; the end of all others is the rank's. */
static void close_others(void)
{
    const char *kept = getenv("PMI_FD");
    const unsigned fd = kept ? (unsigned)strtoul(kept, NULL, 10) : 0;

    if (fd > 0)
        syscall(SYS_close_range, 0U, fd - 1, 0U);
    syscall(SYS_close_range, fd > 0 ? fd + 1 : 0U, UINT_MAX, 0U);
}

static _Noreturn void end_as(int status)
{
    sigset_t all;

    if (WIFSIGNALED(status)) {
        prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); /* the rank has left its core */
        signal(WTERMSIG(status), SIG_DFL);
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

/* Signals are blocked. SIGTSTP would stop the rank, but not whoever started mpirun. A rank that has stopped itself, see
 * stand_in_follow(), goes on as soon as this process runs. */
static _Noreturn void stand(pid_t rank)
{
    char *run = getenv("PMIX_NAMESPACE");
    int number, status;
    sigset_t all;

    if (run)
        *run = '\0'; /* it is no rank of this run: see watchdog.c */
    prctl(PR_SET_NAME, "stand-in", 0UL, 0UL, 0UL);
    close_others();
    sigfillset(&all);
    for (;;) {
        sigwait(&all, &number);
        if (number != SIGCHLD && number != SIGTSTP)
            kill(rank, number);
        if (waitpid(rank, &status, WNOHANG | WUNTRACED) != rank)
            continue;
        if (!WIFSTOPPED(status))
            end_as(status);
        if (WSTOPSIG(status) == SIGTSTP)
            kill(rank, SIGCONT);
    }
}

/* The rank as it begins: what its stand-in has left it is in this variable of the environment. */
static int stands_before(void)
{
    const char *given = getenv(GIVEN);
    const int found = given && sscanf(given, "%d %d %d", &stand_in, &launcher_end, &launcher) == 3;

    if (found) {
        fcntl(stand_in, F_SETFD, FD_CLOEXEC);
        fcntl(launcher_end, F_SETFD, FD_CLOEXEC);
        unsetenv(GIVEN);
        prctl(PR_SET_NAME, program_invocation_short_name, 0UL, 0UL, 0UL); /* not "exe" */
    }
    return found;
}

/* Begins the program anew, as the libraries of MPI that it has loaded are not made to go on in a child: Debian 13's UCX
 * then waited for a lock of its own for good, in one of ten starts. Returns if it cannot. */
static void begin_anew(char *const *arguments)
{
    char given[48];

    snprintf(given, sizeof given, "%d %d %d", stand_in, launcher_end, launcher);
    fcntl(stand_in, F_SETFD, 0);
    fcntl(launcher_end, F_SETFD, 0);
    if (setenv(GIVEN, given, 1) == 0)
        execv("/proc/self/exe", arguments);
    stands_before();
}

static int kills_ranks(const char *name)
{
    static const char *const names[] = { "hydra_pmi_proxy", "prterun", "prted" };
    int found = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found |= !strcmp(name, names[i]);
    return found;
}

void stand_in_start(char *const *arguments)
{
    const pid_t starter = getppid(), self = getpid();
    char name[PROCESS_NAME_MAX];
    sigset_t all, before;
    pid_t rank;

    if (stands_before())
        return;
    if (process_name(starter, name) < 0 || !kills_ranks(name) ||
        (launcher_end = (int)syscall(SYS_pidfd_open, starter, 0U)) < 0 ||
        (stand_in = (int)syscall(SYS_pidfd_open, self, 0U)) < 0)
        return;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    if ((rank = fork()) > 0) {
        prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
        if (getppid() != starter)
            raise(SIGKILL);
        stand(rank);
    }
    if (rank == 0) {
        launcher = starter;
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, (unsigned long)SIGCONT, 0UL, 0UL, 0UL); /* a rank that is stopped has to see it, too */
    } else {
        stand_in = -1; /* this process goes on, without one */
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rank == 0 && arguments)
        begin_anew(arguments);
}

int stand_in_watched(void)
{
    return stand_in;
}

void stand_in_follow(void)
{
    if (stand_in >= 0 && process_stopped(getppid()))
        kill(getpid(), SIGTSTP);
}

pid_t stand_in_launcher(void)
{
    if (stand_in < 0)
        return getppid();
    return stand_in_launcher_gone(0) ? 0 : launcher;
}

int stand_in_launcher_gone(int milliseconds)
{
    struct pollfd ended = { launcher_end, POLLIN, 0 };

    return poll(&ended, 1, milliseconds) > 0;
}
