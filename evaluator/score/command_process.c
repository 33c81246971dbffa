#include "evaluator/score/command_process.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/program/memory_kills.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- command log ------------------------------------------------------------------------------------------------- */

void command_log_init(struct command_log *l, size_t limit)
{
    *l = (struct command_log){ .fd = -1, .limit = limit };
}

void command_log_open(struct command_log *l, const char *path)
{
    snprintf(l->path, sizeof l->path, "%s", path);
    file_open_plain(NULL, path, O_WRONLY | O_CREAT | O_APPEND, &l->fd, NULL);
}

void command_log_close(struct command_log *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    free(l->tail);
    l->tail = NULL;
}

void command_log_note(struct command_log *l, const char *format, ...)
{
    struct timespec now;
    struct tm utc;
    va_list args;
    char date[32];

    if (l->fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &utc));
    dprintf(l->fd, "%s# %s ", l->in_line ? "\n" : "", date);
    va_start(args, format);
    vdprintf(l->fd, format, args);
    va_end(args);
    dprintf(l->fd, "\n");
    l->in_line = 0;
}

static void put(struct command_log *l, const char *bytes, size_t n)
{
    ssize_t ignored = n ? write(l->fd, bytes, n) : 0; /* the ledger will report a full disk */

    (void)ignored;
    if (n)
        l->in_line = bytes[n - 1] != '\n';
}

/* Copies those of n bytes that the ring has room for to their places. */
static void keep_last(struct command_log *l, const char *bytes, size_t n)
{
    const size_t kept = n < COMMAND_LOG_TAIL ? n : COMMAND_LOG_TAIL;
    const size_t at = (l->beyond + (n - kept)) % COMMAND_LOG_TAIL;
    const size_t first = kept < COMMAND_LOG_TAIL - at ? kept : COMMAND_LOG_TAIL - at;

    memcpy(l->tail + at, bytes + (n - kept), first);
    memcpy(l->tail, bytes + (n - kept) + first, kept - first);
}

void command_log_add(struct command_log *l, const char *bytes, size_t n)
{
    const size_t room = l->limit - COMMAND_LOG_TAIL - l->head, now = n < room ? n : room;
    const uint64_t before = l->beyond;

    if (l->fd < 0)
        return;
    put(l, bytes, now);
    l->head += now;
    if (n == now)
        return;
    if (l->tail || (l->tail = malloc(COMMAND_LOG_TAIL)))
        keep_last(l, bytes + now, n - now);
    l->beyond += n - now;
    if (before <= COMMAND_LOG_TAIL && l->beyond > COMMAND_LOG_TAIL)
        command_log_note(l, "too much output: only the last %d bytes of the rest are kept", COMMAND_LOG_TAIL);
}

void command_log_end(struct command_log *l)
{
    const uint64_t kept = !l->tail ? 0 : l->beyond < COMMAND_LOG_TAIL ? l->beyond : COMMAND_LOG_TAIL;
    const size_t at = l->beyond > kept ? l->beyond % COMMAND_LOG_TAIL : 0;

    if (l->beyond > kept)
        command_log_note(l, "%" PRIu64 " bytes are left out here", l->beyond - kept);
    if (kept) {
        put(l, l->tail + at, (size_t)kept - at);
        put(l, l->tail, at);
    }
    free(l->tail);
    l->tail = NULL;
    l->head = 0;
    l->beyond = 0;
}

void command_log_last_line(const struct command_log *l, char *out, size_t size)
{
    char text[4096], *rest = NULL;
    int fd = l->fd < 0 ? -1 : open(l->path, O_RDONLY | O_CLOEXEC);
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

void command_log_see(const struct command_log *l, char *out, size_t size)
{
    *out = '\0';
    if (l->fd >= 0)
        snprintf(out, size, "; see %.200s", l->path);
}

/* ---- command guard ----------------------------------------------------------------------------------------------- */

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

/* Runs words[0], found in PATH, in a process group of its own, without standard input, and with default signal handling
 * (SIGPIPE and SIGXFSZ included). ERR_IO: the guard could not be started, e->system says why. OK: the caller must wait
 * for g. Does not wait for the exec: the report says whether it succeeded. */
static int command_guard_start(struct command_guard *g, char *const *words, char *const *environment,
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

/* Takes the report if there is one. 1: the guard has ended and nothing is left. Never blocks. */
static int command_guard_look(struct command_guard *g)
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

/* SIGTERM to the command's group. */
static void command_guard_terminate(const struct command_guard *g)
{
    kill(g->pid, TERMINATE);
}

/* SIGKILL to all. */
static void command_guard_kill(const struct command_guard *g)
{
    kill(g->pid, KILL);
}

/* Waits until the guard has ended, and closes g. */
static void command_guard_wait(struct command_guard *g)
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

/* ---- command life ------------------------------------------------------------------------------------------------ */

/* How long processes left by a command have from SIGTERM to SIGKILL, and a pipe held by others may stay open. */
#define LEFT_BEHIND_SECONDS 1.0

void command_life_begin(struct command_life *l, double now)
{
    *l = (struct command_life){ .started = now, .kill_at = INFINITY };
}

enum command_act command_life_look(struct command_life *l, const struct command_facts *facts, double timeout,
                                   double now)
{
    enum command_act act = COMMAND_WAIT;

    if (!l->leaving && (facts->gone || facts->ended)) {
        l->leaving = 1;
        l->kill_at = l->leave_at = now + LEFT_BEHIND_SECONDS;
    }
    if (facts->gone)
        return !facts->open || now >= l->leave_at ? COMMAND_OVER : COMMAND_WAIT;
    if (!l->leaving && !l->late && timeout > 0 && now - l->started >= timeout) {
        l->late = 1;
        act = command_life_stop(l, COMMAND_GRACE_SECONDS, now);
    }
    if (now < l->kill_at && !(l->leaving && !facts->open))
        return act;
    l->kill_at = INFINITY;
    return COMMAND_KILL;
}

enum command_act command_life_stop(struct command_life *l, double grace, double now)
{
    const int told = !isinf(l->kill_at);

    if (l->leaving)
        return COMMAND_WAIT;
    l->kill_at = fmin(l->kill_at, now + grace);
    return told ? COMMAND_WAIT : COMMAND_TERMINATE;
}

double command_life_due(const struct command_life *l, double timeout, double now)
{
    const double due = l->kill_at - now;

    return !l->leaving && !l->late && timeout > 0 ? fmin(due, l->started + timeout - now) : due;
}

/* ---- command process --------------------------------------------------------------------------------------------- */

enum { READ_AT_ONCE = 1 << 16, LOOK_BYTES_MAX = 1 << 22 };

extern char **environ;

void command_process_init(struct command_process *p, size_t log_limit)
{
    *p = (struct command_process){ .guard = { .pid = -1, .report_fd = -1 }, .streams = { -1, -1 } };
    command_log_init(&p->log, log_limit);
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

static int spawn(struct command_process *p, char *const *words, char *const *environment, int both, struct error *e)
{
    int output[2] = { -1, -1 }, errors[2] = { -1, -1 }, rc;

    if (pipe2(output, O_CLOEXEC) < 0 || (!both && pipe2(errors, O_CLOEXEC) < 0))
        rc = error_system(e, "cannot start a process");
    else
        rc = command_guard_start(&p->guard, words, environment,
                                 (struct command_streams){ output[1], both ? output[1] : errors[1] }, e);
    for (int i = rc == OK ? 1 : 0; i < 2; i++) {
        if (output[i] >= 0)
            close(output[i]);
        if (errors[i] >= 0)
            close(errors[i]);
    }
    if (rc != OK)
        return rc;
    p->streams[0] = output[0];
    p->streams[1] = errors[0];
    return OK;
}

static void watch(int poll_fd, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    fcntl(fd, F_SETFL, O_NONBLOCK);
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event);
}

int command_process_start(struct command_process *p, char *const *words, char *const *environment, int both,
                          int poll_fd, struct error *e)
{
    int rc = spawn(p, words, environment, both, e);

    if (rc != OK)
        return rc;
    p->running = 1;
    p->kills_before = memory_kills();
    command_life_begin(&p->life, clock_monotonic());
    for (int i = 0; i < COMMAND_STREAMS; i++)
        if (p->streams[i] >= 0)
            watch(poll_fd, p->streams[i]);
    watch(poll_fd, p->guard.report_fd);
    return OK;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static void read_stream(struct command_process *p, int stream, command_process_output *output, void *context)
{
    static const size_t most = LOOK_BYTES_MAX;
    int *fd = &p->streams[stream];
    char bytes[READ_AT_ONCE];

    for (size_t total = 0; *fd >= 0 && total < most;) {
        ssize_t n = read(*fd, bytes, sizeof bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* nothing more for now */
        if (!n) {
            close(*fd); /* otherwise the descriptor would stay readable */
            *fd = -1;
            return;
        }
        command_log_add(&p->log, bytes, (size_t)n);
        if (output && stream == 0)
            output(context, bytes, (size_t)n);
        total += (size_t)n;
    }
}

static int read_streams(struct command_process *p, command_process_output *output, void *context)
{
    int open = 0;

    for (int i = 0; i < COMMAND_STREAMS; i++) {
        read_stream(p, i, output, context);
        open |= p->streams[i] >= 0;
    }
    return open;
}

int command_process_look(struct command_process *p, double timeout, command_process_output *output, void *context)
{
    /* In this order: output written before the end must be read after the end is seen. */
    const int gone = command_guard_look(&p->guard), open = read_streams(p, output, context);
    const struct command_facts facts = { .gone = gone, .ended = p->guard.reported, .open = open };
    const enum command_act act = command_life_look(&p->life, &facts, timeout, clock_monotonic());

    if (act == COMMAND_TERMINATE)
        command_guard_terminate(&p->guard);
    if (act == COMMAND_KILL)
        command_guard_kill(&p->guard);
    return act == COMMAND_OVER;
}

void command_process_stop(struct command_process *p, double grace)
{
    if (p->running && command_life_stop(&p->life, grace, clock_monotonic()) == COMMAND_TERMINATE)
        command_guard_terminate(&p->guard);
}

double command_process_due(const struct command_process *p, double timeout)
{
    return command_life_due(&p->life, timeout, clock_monotonic());
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

void command_process_finish(struct command_process *p)
{
    const int *status = &p->guard.status;

    command_guard_wait(&p->guard);
    p->running = 0;
    command_log_end(&p->log);
    if (!p->guard.not_started)
        command_log_note(&p->log, "%s %d after %.3f s", WIFSIGNALED(*status) ? "signal" : "exit status",
                         WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status),
                         clock_monotonic() - p->life.started);
}

int command_process_outcome(const struct command_process *p, const char *program, double timeout, const char *option,
                            struct error *why)
{
    const int status = p->guard.status;
    char said[176], log[PATH_MAX + 8], memory[MEMORY_KILLS_TEXT_MAX];

    if (p->guard.not_started) {
        errno = p->guard.not_started;
        return error_system(why, "cannot run '%.300s'", program);
    }
    command_log_last_line(&p->log, said, sizeof said);
    command_log_see(&p->log, log, sizeof log);
    if (p->life.late)
        return error_set(why, ERR_PEER, "the command ran longer than the %g s of %s and was ended%s", timeout, option,
                         log);
    if (status)
        memory_kills_text(p->kills_before, memory);
    if (WIFSIGNALED(status))
        return error_set(why, ERR_PEER, "the command was ended by signal %d (%s)%s%s%s", WTERMSIG(status),
                         strsignal(WTERMSIG(status)), memory, said, log);
    if (WEXITSTATUS(status))
        return error_set(why, ERR_PEER, "the command ended with exit status %d%s%s%s", WEXITSTATUS(status), memory,
                         said, log);
    return OK;
}

void command_process_release(struct command_process *p)
{
    if (p->running) {
        command_guard_kill(&p->guard);
        command_guard_wait(&p->guard);
        command_log_end(&p->log);
        p->running = 0;
    }
    for (int i = 0; i < COMMAND_STREAMS; i++) {
        if (p->streams[i] >= 0)
            close(p->streams[i]);
        p->streams[i] = -1;
    }
}
