#include "evaluator/command_process.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_AT_ONCE = 1 << 16, LOOK_BYTES_MAX = 1 << 22 };

/* How long a pipe may stay open after the command has ended, by what it left behind. */
#define LEFT_BEHIND_SECONDS 1.0
/* How often is looked for the end where the kernel gives no descriptor that tells it. */
#define LOOK_SECONDS 0.05

extern char **environ;

/* ---- the log ----------------------------------------------------------------------------------------------------- */

void command_process_init(struct command_process *p, size_t log_limit)
{
    *p = (struct command_process){ .pid = -1, .pid_fd = -1, .output_fd = -1, .log_fd = -1, .failed_fd = -1,
                                   .log_limit = log_limit };
}

void command_process_open_log(struct command_process *p, const char *path)
{
    snprintf(p->log_path, sizeof p->log_path, "%s", path);
    file_open_plain(NULL, path, O_WRONLY | O_CREAT | O_APPEND, &p->log_fd, NULL);
}

void command_process_close_log(struct command_process *p)
{
    if (p->log_fd >= 0)
        close(p->log_fd);
    p->log_fd = -1;
}

void command_process_note(const struct command_process *p, const char *format, ...)
{
    struct timespec now;
    struct tm utc;
    va_list args;
    char date[32];

    if (p->log_fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &utc));
    dprintf(p->log_fd, "# %s ", date);
    va_start(args, format);
    vdprintf(p->log_fd, format, args);
    va_end(args);
    dprintf(p->log_fd, "\n");
}

/* A command that prints without end must not fill the disk; what it prints is still read. */
static void keep_output(struct command_process *p, const char *bytes, size_t n)
{
    ssize_t ignored = p->log_fd < 0 ? 0 : write(p->log_fd, bytes, n); /* a full disk is the ledger's to complain of */

    (void)ignored;
    p->logged += n;
    if (p->logged >= p->log_limit)
        command_process_note(p, "the rest of its output is not kept");
}

/* The last line the command said, for the reason of a failure; "" without one. */
static void last_line(const struct command_process *p, char *out, size_t size)
{
    char text[4096], *rest = NULL;
    int fd = p->log_fd < 0 ? -1 : open(p->log_path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ssize_t n;

    *out = '\0';
    if (fd < 0)
        return;
    n = fstat(fd, &st) == 0 ? pread(fd, text, sizeof text - 1, st.st_size > 4095 ? st.st_size - 4095 : 0) : -1;
    close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "# ", 2) && line[strspn(line, " \t\r")])
            snprintf(out, size, ": %.*s", 160, line);
    for (; *out; out++)
        if ((unsigned char)*out < ' ' || *out == 0x7f)
            *out = ' ';
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

char **command_process_environment(const struct command_variable *variables, size_t n)
{
    size_t count = 0, kept = 0, bytes = 0;
    char **out, *text;

    while (environ[count])
        count++;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(variables[i].name) + strlen(variables[i].value) + 2;
    if (!(out = malloc((count + n + 1) * sizeof *out + bytes)))
        return NULL;
    text = (char *)(out + count + n + 1);
    for (size_t k = 0; k < count; k++) {
        int ours = 0;

        for (size_t i = 0; i < n; i++) {
            size_t length = strlen(variables[i].name);

            ours |= !strncmp(environ[k], variables[i].name, length) && environ[k][length] == '=';
        }
        if (!ours)
            out[kept++] = environ[k];
    }
    for (size_t i = 0; i < n; i++) {
        out[kept++] = text;
        text += sprintf(text, "%s=%s", variables[i].name, variables[i].value) + 1;
    }
    out[kept] = NULL;
    return out;
}

struct streams { /* of the child */
    int output, errors, failed;
};

/* Between fork and exec in a process of several threads: only what is safe in a signal handler. */
static void become(char *const *words, char *const *environment, struct streams to, pid_t parent)
{
    struct sigaction action;
    sigset_t none;
    int number, input = open("/dev/null", O_RDONLY);
    ssize_t ignored;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (number = 1; number < NSIG; number++) /* our handlers are not for this process; what nohup ignores stays so */
        if (sigaction(number, NULL, &action) == 0 && (action.sa_handler != SIG_IGN || number == SIGPIPE ||
                                                    number == SIGXFSZ))
            signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (to.errors < 0)
        to.errors = open("/dev/null", O_WRONLY);
    if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(to.output, STDOUT_FILENO) >= 0 &&
        dup2(to.errors, STDERR_FILENO) >= 0)
        execvpe(words[0], words, environment);
    number = errno;
    ignored = write(to.failed, &number, sizeof number);
    (void)ignored;
    _exit(127);
}

static int spawn(struct command_process *p, char *const *words, char *const *environment, int both, struct error *e)
{
    int output[2] = { -1, -1 }, failed[2] = { -1, -1 }, number;
    pid_t parent = getpid();
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* until the child has given up our handlers */
    p->pid = -1;
    if (pipe2(output, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0)
        p->pid = fork();
    if (!p->pid)
        become(words, environment, (struct streams){ output[1], both ? output[1] : p->log_fd, failed[1] }, parent);
    number = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int i = p->pid < 0 ? 0 : 1; i < 2; i++) {
        if (output[i] >= 0)
            close(output[i]);
        if (failed[i] >= 0)
            close(failed[i]);
    }
    errno = number;
    if (p->pid < 0)
        return error_system(e, "cannot start a process");
    setpgid(p->pid, p->pid); /* here as well: whoever is first */
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    p->output_fd = output[0];
    p->failed_fd = failed[0];
    return OK;
}

static void watch(int poll_fd, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event);
}

int command_process_start(struct command_process *p, char *const *words, char *const *environment, int both,
                          int poll_fd, struct error *e)
{
    int rc = spawn(p, words, environment, both, e);

    if (rc != OK)
        return rc;
    p->running = 1;
    p->started = clock_monotonic();
    p->kill_at = INFINITY;
    p->leaving = p->late = p->output_ended = 0;
    p->logged = 0;
    watch(poll_fd, p->output_fd);
    if ((p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0)) >= 0) /* close-on-exec by itself */
        watch(poll_fd, p->pid_fd);
    return OK;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static void read_output(struct command_process *p, command_process_output *output, void *context)
{
    static const size_t most = LOOK_BYTES_MAX;
    char bytes[READ_AT_ONCE];

    for (size_t total = 0; p->output_fd >= 0 && !p->output_ended && total < most;) {
        ssize_t n = read(p->output_fd, bytes, sizeof bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* nothing more for now */
        if (!n) {
            p->output_ended = 1;
            close(p->output_fd); /* or the descriptor would be readable for ever */
            p->output_fd = -1;
            return;
        }
        if (p->logged < p->log_limit)
            keep_output(p, bytes, (size_t)n);
        if (output)
            output(context, bytes, (size_t)n);
        total += (size_t)n;
    }
}

int command_process_look(struct command_process *p, double timeout, command_process_output *output, void *context)
{
    double now = clock_monotonic();
    siginfo_t info = { 0 };

    read_output(p, output, context);
    if (!p->leaving && waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
        p->leaving = 1;
        p->leave_at = now + LEFT_BEHIND_SECONDS;
        if (p->pid_fd >= 0)
            close(p->pid_fd);
        p->pid_fd = -1;
        kill(-p->pid, SIGTERM);
        read_output(p, output, context);
    }
    if (p->leaving)
        return p->output_ended || now >= p->leave_at;
    if (timeout > 0 && now - p->started >= timeout && !p->late) {
        p->late = 1;
        command_process_stop(p, COMMAND_GRACE_SECONDS);
    }
    if (now >= p->kill_at) {
        kill(-p->pid, SIGKILL);
        p->kill_at = INFINITY;
    }
    return 0;
}

void command_process_stop(struct command_process *p, double grace)
{
    double at = clock_monotonic() + grace;

    if (!p->running || p->leaving)
        return;
    if (isinf(p->kill_at))
        kill(-p->pid, SIGTERM);
    p->kill_at = fmin(p->kill_at, at);
}

double command_process_due(const struct command_process *p, double timeout)
{
    double now = clock_monotonic(), due = p->leaving ? p->leave_at - now : p->kill_at - now;

    if (!p->leaving && timeout > 0 && !p->late)
        due = fmin(due, p->started + timeout - now);
    if (!p->leaving && p->pid_fd < 0)
        due = fmin(due, LOOK_SECONDS);
    return due;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

int command_process_finish(struct command_process *p)
{
    int status = 0;

    kill(-p->pid, SIGKILL); /* what it left behind; its number is still taken by the zombie */
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
        ;
    p->running = 0;
    command_process_note(p, "%s %d after %.3f s", WIFSIGNALED(status) ? "signal" : "exit status",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), clock_monotonic() - p->started);
    return status;
}

void command_process_see(const struct command_process *p, char *out, size_t size)
{
    *out = '\0';
    if (p->log_fd >= 0)
        snprintf(out, size, "; see %.200s", p->log_path);
}

int command_process_outcome(const struct command_process *p, int status, const char *program, double timeout,
                            const char *option, struct error *why)
{
    char said[176], log[PATH_MAX + 8];
    int number;

    if (WIFEXITED(status) && read(p->failed_fd, &number, sizeof number) == sizeof number) {
        errno = number;
        return error_system(why, "cannot run '%.300s'", program);
    }
    last_line(p, said, sizeof said);
    command_process_see(p, log, sizeof log);
    if (p->late)
        return error_set(why, ERR_PEER, "the command ran longer than the %g s of %s and was ended%s", timeout, option,
                         log);
    if (WIFSIGNALED(status))
        return error_set(why, ERR_PEER, "the command was ended by signal %d (%s)%s%s", WTERMSIG(status),
                         strsignal(WTERMSIG(status)), said, log);
    if (WEXITSTATUS(status))
        return error_set(why, ERR_PEER, "the command ended with exit status %d%s%s", WEXITSTATUS(status), said, log);
    return OK;
}

void command_process_release(struct command_process *p)
{
    if (p->running) {
        kill(-p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
        p->running = 0;
    }
    if (p->output_fd >= 0)
        close(p->output_fd);
    if (p->pid_fd >= 0)
        close(p->pid_fd);
    if (p->failed_fd >= 0)
        close(p->failed_fd);
    p->output_fd = p->pid_fd = p->failed_fd = -1;
}
