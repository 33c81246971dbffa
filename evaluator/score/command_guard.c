#include "evaluator/score/command_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals for requests to the guard. Nobody else sends them: a SIGTERM to all processes of our name is not for it. */
enum { TERMINATE = SIGUSR2, KILL = SIGUSR1 };

struct report {
    int not_started, status;
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Runs after vfork(), in the guard's memory. Only async-signal-safe calls. */
static _Noreturn void become(char *const *words, char *const *environment, struct command_streams to, pid_t parent,
                             volatile int *failed)
{
    struct sigaction action;
    sigset_t none;
    int number, input = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (number = 1; number < NSIG; number++) /* handlers are ours; what nohup ignores stays ignored */
        if (sigaction(number, NULL, &action) == 0 &&
            (action.sa_handler != SIG_IGN || number == SIGPIPE || number == SIGXFSZ))
            signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(to.output, STDOUT_FILENO) >= 0 &&
        dup2(to.errors, STDERR_FILENO) >= 0)
        execvpe(words[0], words, environment);
    *failed = errno;
    _exit(127);
}

/* ---- the guard --------------------------------------------------------------------------------------------------- */

/* Calls act() for the entries of a directory in /proc that are numbers: returns for how many it is not 0. act() also
 * gets the descriptor of the listing. After fork() in a process with threads, opendir() is not allowed. */
static size_t for_each_number(const char *directory, int (*act)(int number, int listing, int argument), int argument)
{
    _Alignas(struct dirent64) char bytes[4096];
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t count = 0;
    ssize_t n;

    while (fd >= 0 && (n = getdents64(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(bytes + at);

            if (*entry->d_name >= '0' && *entry->d_name <= '9')
                count += act((int)strtol(entry->d_name, NULL, 10), fd, argument) != 0;
            at += entry->d_reclen;
        }
    if (fd >= 0)
        close(fd);
    return count;
}

static int close_other(int fd, int listing, int kept)
{
    return fd != listing && fd != kept && close(fd) == 0;
}

/* waitid() knows only our children, whatever numbers /proc shows. */
static int kill_child(int pid, int listing, int number)
{
    siginfo_t info;

    (void)listing;
    return pid && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && kill(pid, number) == 0;
}

struct guard {
    pid_t command; /* 0: has ended */
    int report_fd;
};

/* Reaps children that have ended, waiting for one if asked to. 0: there are none left. */
static int reap(struct guard *g, int wait)
{
    siginfo_t info = { 0 };
    struct report report = { 0 };
    ssize_t ignored;

    while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | __WALL | (wait ? 0 : WNOHANG)) == 0) {
        if (!info.si_pid)
            return 1;
        if (info.si_pid == g->command)
            kill(-g->command, SIGTERM); /* its number is not reused until it is waited for */
        waitpid(info.si_pid, &report.status, __WALL);
        if (info.si_pid == g->command) {
            g->command = 0;
            ignored = write(g->report_fd, &report, sizeof report); /* if nobody reads it, KILL is on its way */
            (void)ignored;
        }
        info.si_pid = 0;
        wait = 0;
    }
    return errno != ECHILD;
}

static _Noreturn void guard(char *const *words, char *const *environment, struct command_streams to, int report_fd,
                            pid_t parent)
{
    struct guard g = { 0, report_fd };
    volatile int failed = 0;
    sigset_t wanted;
    int number = 0;
    const pid_t self = getpid();

    setpgid(0, 0); /* out of reach of signals to our group, such as Ctrl-C */
    prctl(PR_SET_NAME, "eval-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, KILL);
    signal(SIGCHLD, SIG_DFL);
    if (getppid() != parent)
        _exit(127);
    if ((g.command = vfork()) == 0)
        become(words, environment, to, self, &failed);
    if (g.command < 0)
        failed = errno;
    if (failed) {
        const struct report report = { failed, 0 };

        waitpid(g.command, NULL, 0);
        _exit(write(report_fd, &report, sizeof report) < 0);
    }
    for_each_number("/proc/self/fd", close_other, report_fd);
    sigemptyset(&wanted); /* all are blocked, so none is lost between two checks */
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, TERMINATE);
    sigaddset(&wanted, KILL);
    while (number != KILL) {
        number = sigwaitinfo(&wanted, NULL);
        if (number == TERMINATE && g.command)
            kill(-g.command, SIGTERM);
        if (number == SIGCHLD && !reap(&g, 0))
            _exit(0);
    }
    while (reap(&g, 0) && for_each_number("/proc", kill_child, SIGKILL))
        reap(&g, 1);
    _exit(g.command ? 127 : 0);
}

/* ---- on our side ------------------------------------------------------------------------------------------------- */

int command_guard_start(struct command_guard *g, char *const *words, char *const *environment,
                        struct command_streams streams, struct error *e)
{
    const pid_t parent = getpid();
    int report[2], number;
    sigset_t all, before;

    *g = (struct command_guard){ -1, -1, 0, 0, 0 };
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_system(e, "cannot start a process");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the guard, and it misses no signal */
    g->pid = fork();
    if (!g->pid)
        guard(words, environment, streams, report[1], parent);
    number = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (g->pid < 0) {
        close(report[0]);
        errno = number;
        return error_system(e, "cannot start a process");
    }
    g->report_fd = report[0];
    return OK;
}

int command_guard_look(struct command_guard *g)
{
    struct report report;
    ssize_t n = -1;

    while (g->report_fd >= 0 && (n = read(g->report_fd, &report, sizeof report)) == sizeof report) {
        g->reported = 1;
        g->not_started = report.not_started;
        g->status = report.status;
    }
    if (g->report_fd >= 0 && n == 0) {
        close(g->report_fd); /* otherwise the descriptor would stay readable */
        g->report_fd = -1;
    }
    return g->report_fd < 0;
}

void command_guard_terminate(const struct command_guard *g)
{
    kill(g->pid, TERMINATE);
}

void command_guard_kill(const struct command_guard *g)
{
    kill(g->pid, KILL);
}

void command_guard_wait(struct command_guard *g)
{
    int status = 0;

    while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
        ;
    command_guard_look(g);
    if (!g->reported) /* somebody killed it, and the kernel then killed the command */
        g->status = status;
    if (g->report_fd >= 0)
        close(g->report_fd);
    g->report_fd = -1;
}
