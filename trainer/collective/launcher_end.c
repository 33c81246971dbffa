#include "trainer/collective/launcher_end.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AGAIN_MILLISECONDS = 2000, KILL_MILLISECONDS = 5000 };

int launcher_end_may(const char *name)
{
    static const char *const names[] = { "mpirun", "mpiexec", "orterun", "orted", "prterun", "prted" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return 0;
}

/* The name that the kernel has of a process. */
static int name_of(pid_t pid, char *name, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return -1;
    n = read(fd, name, size - 1);
    close(fd);
    if (n <= 0)
        return -1;
    name[n - (name[n - 1] == '\n')] = '\0';
    return 0;
}

/* The process that is left behind. It has one thread of those of the rank, which may have held any lock: it calls the
 * kernel alone. run: what says in the environment which run the rank belongs to. */
static _Noreturn void wait_and_end(int launcher, char *run, int milliseconds)
{
    /* The second SIGTERM is for mpirun, which waits for its daemons after the first one, and ends at once if it is told
     * again within five seconds. */
    const struct {
        int wait, number;
    } steps[] = { { milliseconds, SIGTERM }, { AGAIN_MILLISECONDS, SIGTERM }, { KILL_MILLISECONDS, SIGKILL } };
    struct pollfd ended = { 0, POLLIN, 0 };

    if (run)
        *run = '\0'; /* it is no rank of this run: see watchdog.c */
    prctl(PR_SET_NAME, "ends mpirun", 0UL, 0UL, 0UL);
    setsid();
    if (dup2(launcher, 0) == 0 && syscall(SYS_close_range, 1U, UINT_MAX, 0U) == 0)
        for (size_t i = 0; i < sizeof steps / sizeof *steps && poll(&ended, 1, steps[i].wait) == 0; i++)
            syscall(SYS_pidfd_send_signal, 0, steps[i].number, NULL, 0U);
    for (;;)
        syscall(SYS_exit_group, 0);
}

void launcher_end_later(int milliseconds)
{
    const pid_t parent = getppid();
    char name[32], *run = getenv("PMIX_NAMESPACE");
    int launcher;

    if (name_of(parent, name, sizeof name) < 0 || !launcher_end_may(name) ||
        (launcher = (int)syscall(SYS_pidfd_open, parent, 0U)) < 0)
        return;
    /* Not fork(), for which OpenBLAS first ends its threads. */
    if (getppid() == parent && syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL) == 0)
        wait_and_end(launcher, run, milliseconds);
    close(launcher);
}
