#include "trainer/launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 };

static const int passed_on[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };

static const struct timespec pause_of_look = { 0, 200000000 };

/* Makes fd lead to the file, or to nothing on input. */
static void lead(int fd, const char *path, int flags)
{
    const int opened = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0666);

    if (opened < 0)
        _exit(CANNOT_RUN);
    if (opened != fd)
        dup2(opened, fd);
}

static _Noreturn void become(const struct child *c, const sigset_t *mask, pid_t parent)
{
    const union { /* exec does not write to them */
        const char *const *given;
        char *const *taken;
    } argv = { c->words };

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        _exit(CANNOT_RUN);
    lead(0, "/dev/null", O_RDONLY);
    if (c->output)
        lead(1, c->output, O_WRONLY | O_CREAT | O_TRUNC);
    if (c->errors)
        lead(2, c->errors, O_WRONLY | O_CREAT | O_TRUNC);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv.taken[0], argv.taken);
    _exit(CANNOT_RUN);
}

struct family {
    struct child *children;
    size_t count;
    pid_t pids[CHILDREN_MOST]; /* 0: it has ended */
};

static size_t living(const struct family *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->count; i++)
        n += f->pids[i] > 0;
    return n;
}

static void pass_on(const struct family *f, int number)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->pids[i] > 0)
            kill(f->pids[i], number);
}

/* Takes the status of those that have ended. */
static void reap(struct family *f)
{
    for (size_t i = 0; i < f->count; i++) {
        struct child_end *end = &f->children[i].end;
        int status;

        if (f->pids[i] <= 0 || waitpid(f->pids[i], &status, WNOHANG) != f->pids[i])
            continue;
        f->pids[i] = 0;
        end->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (i == 0 && end->status != 0)
            pass_on(f, SIGTERM);
    }
}

/* Passes signals on until all have ended. */
static void wait_for(struct family *f, const sigset_t *signals, void (*look)(void *context), void *context)
{
    siginfo_t what;

    while (living(f) > 0) {
        const int number = look ? sigtimedwait(signals, &what, &pause_of_look) : sigwaitinfo(signals, &what);

        if (number == SIGCHLD)
            reap(f);
        else if (number > 0)
            pass_on(f, number);
        else if (look)
            look(context);
        if (number == SIGTSTP)
            raise(SIGSTOP);
        else if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT)
            for (size_t i = 0; i < f->count; i++)
                f->children[i].end.asked = number;
    }
}

int children_run(struct child *children, size_t count, void (*look)(void *context), void *context, struct error *e)
{
    const pid_t parent = getpid();
    struct family f = { .children = children, .count = count };
    sigset_t signals, before;
    int rc = OK;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&signals, passed_on[i]);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would never come */
    sigprocmask(SIG_BLOCK, &signals, &before);
    for (size_t i = 0; i < count && rc == OK; i++) {
        memset(&children[i].end, 0, sizeof children[i].end);
        f.pids[i] = fork();
        if (f.pids[i] == 0)
            become(&children[i], &before, parent);
        if (f.pids[i] > 0)
            setpgid(f.pids[i], f.pids[i]); /* whichever of the two is first */
        else
            rc = error_system(e, "start %s", children[i].words[0]);
    }
    if (rc < 0)
        pass_on(&f, SIGTERM);
    wait_for(&f, &signals, look, context);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int child_run(const char *const *words, struct child_end *out, struct error *e)
{
    struct child child = { .words = words };
    const int rc = children_run(&child, 1, NULL, NULL, e);

    *out = child.end;
    return rc;
}
