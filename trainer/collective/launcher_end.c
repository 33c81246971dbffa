#include "trainer/collective/launcher_end.h"

#include "base/process.h"
#include "trainer/collective/stand_in.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AGAIN_MILLISECONDS = 2000, KILL_MILLISECONDS = 5000, SESSION_DEPTH = 8 };

int launcher_end_may(const char *name)
{
    static const char *const names[] = { "mpirun", "mpiexec", "orterun", "orted", "prterun", "prted" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return 0;
}

/* ---- what a launcher that was killed leaves ---------------------------------------------------------------------- */

struct entry { /* as getdents64() gives them */
    uint64_t number;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Everything below a directory, by calls of the kernel alone. */
static void remove_below(int directory, int depth)
{
    _Alignas(struct entry) char block[2048];
    long n;

    while ((n = syscall(SYS_getdents64, directory, block, sizeof block)) > 0)
        for (long at = 0; at < n;) {
            const struct entry *e = (const void *)&block[at];
            int below;

            at += e->length;
            if (!strcmp(e->name, ".") || !strcmp(e->name, ".."))
                continue;
            if (e->type != DT_DIR) {
                unlinkat(directory, e->name, 0);
                continue;
            }
            below = depth > 0 ? openat(directory, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
            if (below >= 0) {
                remove_below(below, depth - 1);
                close(below);
            }
            unlinkat(directory, e->name, AT_REMOVEDIR);
        }
}

/* The directory of the launcher's session, ".../pid.NUMBER"; NULL: not known. */
static char *session_of(pid_t launcher)
{
    char *path = getenv("PMIX_SERVER_TMPDIR");
    const char *last = path ? strrchr(path, '/') : NULL;
    char wanted[32];

    snprintf(wanted, sizeof wanted, "/pid.%ld", (long)launcher);
    return last && !strcmp(last, wanted) ? path : NULL;
}

static void remove_session(char *path)
{
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (directory < 0)
        return;
    remove_below(directory, SESSION_DEPTH);
    close(directory);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    rmdir(path); /* of the host, if it was the last session there */
}

/* The process that is left behind. It has one thread of those of the rank, which may have held any lock: it calls the
 * kernel alone. run: what says in the environment which run the rank belongs to. session: of the launcher, or NULL. */
static _Noreturn void wait_and_end(int launcher, char *run, char *session, int milliseconds)
{
    /* The second SIGTERM is for mpirun, which waits for its daemons after the first one, and ends at once if it is told
     * again within five seconds. */
    const struct {
        int wait, number;
    } steps[] = { { milliseconds, SIGTERM }, { AGAIN_MILLISECONDS, SIGTERM }, { KILL_MILLISECONDS, SIGKILL } };
    struct pollfd ended = { 0, POLLIN, 0 };
    size_t asked = 0;

    if (run)
        *run = '\0'; /* it is no rank of this run: see watchdog.c */
    prctl(PR_SET_NAME, "ends mpirun", 0UL, 0UL, 0UL);
    setsid();
    if (dup2(launcher, 0) < 0 || syscall(SYS_close_range, 1U, UINT_MAX, 0U) < 0)
        session = NULL;
    else
        for (; asked < sizeof steps / sizeof *steps && poll(&ended, 1, steps[asked].wait) == 0; asked++)
            syscall(SYS_pidfd_send_signal, 0, steps[asked].number, NULL, 0U);
    /* mpirun removes it unless it is asked twice, or crashes, as Open MPI 4.1 may at its end. */
    if (session && poll(&ended, 1, KILL_MILLISECONDS) > 0)
        remove_session(session);
    for (;;)
        syscall(SYS_exit_group, 0);
}

void launcher_end_later(int milliseconds)
{
    const pid_t parent = stand_in_launcher();
    char name[PROCESS_NAME_MAX], *run = getenv("PMIX_NAMESPACE"), *session = session_of(parent);
    int launcher;

    if (process_name(parent, name) < 0 || !launcher_end_may(name) ||
        (launcher = (int)syscall(SYS_pidfd_open, parent, 0U)) < 0)
        return;
    /* Not fork(), for which OpenBLAS first ends its threads. */
    if (stand_in_launcher() == parent && syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL) == 0)
        wait_and_end(launcher, run, session, milliseconds);
    close(launcher);
}
