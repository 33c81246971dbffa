#include "trainer/launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 };

static const int passed_on[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };

static _Noreturn void become(const char *const *words, const sigset_t *mask, pid_t parent)
{
    const union { /* exec does not write to them */
        const char *const *given;
        char *const *taken;
    } argv = { words };
    const int nothing = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        _exit(CANNOT_RUN);
    if (nothing > 0) {
        dup2(nothing, 0);
        close(nothing);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv.taken[0], argv.taken);
    _exit(CANNOT_RUN);
}

/* Passes signals on until the child has ended; returns its status as waitpid() has it. */
static int wait_for(pid_t child, const sigset_t *signals, int *asked)
{
    siginfo_t what;
    int status;

    for (;;) {
        const int number = sigwaitinfo(signals, &what);

        if (number < 0)
            continue;
        if (number != SIGCHLD)
            kill(child, number);
        else if (waitpid(child, &status, WNOHANG) == child)
            return status;
        if (number == SIGTSTP)
            raise(SIGSTOP);
        else if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT)
            *asked = number;
    }
}

int child_run(const char *const *words, struct child_end *out, struct error *e)
{
    const pid_t parent = getpid();
    sigset_t signals, before;
    pid_t child;
    int status;

    memset(out, 0, sizeof *out);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&signals, passed_on[i]);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would never come */
    sigprocmask(SIG_BLOCK, &signals, &before);
    child = fork();
    if (child == 0)
        become(words, &before, parent);
    if (child > 0) {
        setpgid(child, child); /* whichever of the two is first */
        status = wait_for(child, &signals, &out->asked);
        out->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child < 0 ? error_system(e, "start %s", words[0]) : OK;
}
