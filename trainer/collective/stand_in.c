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

/* The only globals: a process has one parent. Of pidfd_open(2); -1: none. */
static int stand_in = -1, proxy = -1;

/* Leaves the proxy's connection with the rank, which takes its end before this process's for a failure of another kind;
 * the end of all others is the rank's. */
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

/* Signals are blocked. SIGTSTP would stop the rank, but not whoever started mpirun. */
static _Noreturn void stand(pid_t rank)
{
    int number = 0, status;
    sigset_t all;

    prctl(PR_SET_NAME, "stand-in", 0UL, 0UL, 0UL);
    close_others();
    sigfillset(&all);
    do {
        if (number && number != SIGCHLD && number != SIGTSTP)
            kill(rank, number);
        sigwait(&all, &number);
    } while (waitpid(rank, &status, WNOHANG) != rank);
    end_as(status);
}

/* The rank as it begins: what its stand-in has left it is in this variable of the environment. */
static int stands_before(void)
{
    const char *given = getenv(GIVEN);
    const int found = given && sscanf(given, "%d %d", &stand_in, &proxy) == 2;

    if (found) {
        fcntl(stand_in, F_SETFD, FD_CLOEXEC);
        fcntl(proxy, F_SETFD, FD_CLOEXEC);
        unsetenv(GIVEN);
        prctl(PR_SET_NAME, program_invocation_short_name, 0UL, 0UL, 0UL); /* not "exe" */
    }
    return found;
}

/* Begins the program anew, as the libraries of MPI that it has loaded are not made to go on in a child: Debian 13's UCX
 * then waited for a lock of its own for good, in one of ten starts. Returns if it cannot. */
static void begin_anew(char *const *arguments)
{
    char given[32];

    snprintf(given, sizeof given, "%d %d", stand_in, proxy);
    fcntl(stand_in, F_SETFD, 0);
    fcntl(proxy, F_SETFD, 0);
    if (setenv(GIVEN, given, 1) == 0)
        execv("/proc/self/exe", arguments);
    stands_before();
}

void stand_in_start(char *const *arguments)
{
    const pid_t starter = getppid(), self = getpid();
    char name[PROCESS_NAME_MAX];
    sigset_t all, before;
    pid_t rank;

    if (stands_before())
        return;
    if (process_name(starter, name) < 0 || strcmp(name, "hydra_pmi_proxy") != 0 ||
        (proxy = (int)syscall(SYS_pidfd_open, starter, 0U)) < 0 ||
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
    if (rank == 0)
        setpgid(0, 0);
    else
        stand_in = -1; /* this process goes on, without one */
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rank == 0 && arguments)
        begin_anew(arguments);
}

int stand_in_watched(void)
{
    return stand_in;
}

int stand_in_launcher_gone(int milliseconds)
{
    struct pollfd ended = { proxy, POLLIN, 0 };

    return poll(&ended, 1, milliseconds) > 0;
}
