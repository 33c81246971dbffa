#include "evaluator/command_runner.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "evaluator/command_words.h"
#include "evaluator/metric_output.h"
#include "evaluator/runner_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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

enum { VALUES = 5, READ_AT_ONCE = 1 << 16, LOOK_BYTES_MAX = 1 << 22, LOG_BYTES_MAX = 16 << 20, BACK_OFF_MAX = 60 };

/* How long a pipe may stay open after the command has ended, by what it left behind. */
#define LEFT_BEHIND_SECONDS 1.0
/* How often is looked for the end where the kernel gives no descriptor that tells it. */
#define LOOK_SECONDS 0.05

static const struct { const char *placeholder, *variable; } names[VALUES] = {
    { "checkpoint", "EVALUATOR_CHECKPOINT" }, { "step", "EVALUATOR_STEP" },         { "index", "EVALUATOR_INDEX" },
    { "eval_dir", "EVALUATOR_EVAL_DIR" },     { "name", "EVALUATOR_NAME" },
};

enum phase { IDLE, RUNNING, LEAVING /* the command has ended, its output is read to the end */, WAITING };

struct slot {
    enum phase phase;
    const struct runner_job *job;
    int64_t attempt;                 /* from 1 */
    pid_t pid;
    int pid_fd, output_fd, log_fd;   /* -1: none */
    int failed_fd;                   /* gives errno if the command could not be run; -1: none */
    char log_path[PATH_MAX];
    double started;
    double kill_at;                  /* SIGTERM was sent; SIGKILL then. infinity: none, or sent */
    double leave_at;                 /* LEAVING: no longer than this */
    double retry_at;                 /* WAITING */
    int late, stopping, output_ended;
    size_t logged;                   /* bytes of standard output in the log, of this attempt */
    struct metric_output output;
    struct evaluation_metrics metrics;
};

struct command_runner {
    char **words;
    struct command_runner_options options;
    int poll_fd; /* readable when a command printed something or ended */
    struct slot *slots;
};

extern char **environ;

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void note(const struct slot *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const struct slot *s, const char *format, ...)
{
    struct timespec now;
    struct tm utc;
    va_list args;
    char date[32];

    if (s->log_fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &utc));
    dprintf(s->log_fd, "# %s ", date);
    va_start(args, format);
    vdprintf(s->log_fd, format, args);
    va_end(args);
    dprintf(s->log_fd, "\n");
}

static void open_log(struct slot *s)
{
    s->log_fd = runner_log_path(s->job, s->log_path, sizeof s->log_path)
                    ? open(s->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
}

static void watch(const struct command_runner *r, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    epoll_ctl(r->poll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* The environment with our variables, those of the same names left out. One block; free() it. */
static char **make_environment(const struct command_value *values)
{
    size_t count = 0, kept = 0, bytes = 0;
    char **out, *text;

    while (environ[count])
        count++;
    for (size_t i = 0; i < VALUES; i++)
        bytes += strlen(names[i].variable) + strlen(values[i].value) + 2;
    if (!(out = malloc((count + VALUES + 1) * sizeof *out + bytes)))
        return NULL;
    text = (char *)(out + count + VALUES + 1);
    for (size_t k = 0; k < count; k++) {
        int ours = 0;

        for (size_t i = 0; i < VALUES; i++) {
            size_t n = strlen(names[i].variable);

            ours |= !strncmp(environ[k], names[i].variable, n) && environ[k][n] == '=';
        }
        if (!ours)
            out[kept++] = environ[k];
    }
    for (size_t i = 0; i < VALUES; i++) {
        out[kept++] = text;
        text += sprintf(text, "%s=%s", names[i].variable, values[i].value) + 1;
    }
    out[kept] = NULL;
    return out;
}

/* Between fork and exec in a process of several threads: only what is safe in a signal handler. */
static void become(char **words, char **environment, int output, int log, int failed, pid_t parent)
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
        if (sigaction(number, NULL, &action) == 0 && (action.sa_handler != SIG_IGN || number == SIGPIPE))
            signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (log < 0)
        log = open("/dev/null", O_WRONLY);
    if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(log, STDERR_FILENO) >= 0)
        execvpe(words[0], words, environment);
    number = errno;
    ignored = write(failed, &number, sizeof number);
    (void)ignored;
    _exit(127);
}

/* Does not wait for the exec, which takes as long as the machine is busy: whether it failed is read at the end. */
static int spawn(struct slot *s, char **words, char **environment, struct error *e)
{
    int output[2] = { -1, -1 }, failed[2] = { -1, -1 }, number;
    pid_t parent = getpid();
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* until the child has given up our handlers */
    s->pid = -1;
    if (pipe2(output, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0)
        s->pid = fork();
    if (!s->pid)
        become(words, environment, output[1], s->log_fd, failed[1], parent);
    number = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int i = s->pid < 0 ? 0 : 1; i < 2; i++) {
        if (output[i] >= 0)
            close(output[i]);
        if (failed[i] >= 0)
            close(failed[i]);
    }
    errno = number;
    if (s->pid < 0)
        return error_system(e, "cannot start a process");
    setpgid(s->pid, s->pid); /* here as well: whoever is first */
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    s->output_fd = output[0];
    s->failed_fd = failed[0];
    return OK;
}

static int launch(struct command_runner *r, struct slot *s, struct error *e)
{
    char step[24], index[24];
    struct command_value values[VALUES] = { { NULL, s->job->path }, { NULL, step }, { NULL, index },
                                            { NULL, s->job->eval_directory }, { NULL, s->job->name } };
    char **words = NULL, **environment = NULL;
    int rc;

    snprintf(step, sizeof step, "%" PRId64, s->job->step);
    snprintf(index, sizeof index, "%" PRId64, s->job->index);
    for (size_t i = 0; i < VALUES; i++)
        values[i].name = names[i].placeholder;
    if ((rc = command_words_fill(r->words, values, VALUES, &words, e)) == OK &&
        !(environment = make_environment(values)))
        rc = error_set(e, ERR_NOMEM, "no memory for the environment of the command");
    note(s, "attempt %" PRId64 ": %s", s->attempt, r->options.command);
    if (rc == OK && (rc = spawn(s, words, environment, e)) == OK) {
        s->phase = RUNNING;
        s->started = clock_monotonic();
        s->kill_at = INFINITY;
        s->late = s->output_ended = 0;
        s->logged = 0;
        metric_output_init(&s->output);
        watch(r, s->output_fd);
        if ((s->pid_fd = (int)syscall(SYS_pidfd_open, s->pid, 0)) >= 0) /* close-on-exec by itself */
            watch(r, s->pid_fd);
    }
    command_words_free(words);
    free(environment);
    return rc;
}

static int runner_start(void *context, size_t slot, const struct runner_job *job, struct error *e)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];

    (void)e;
    *s = (struct slot){ .job = job, .attempt = 0, .pid_fd = -1, .output_fd = -1, .failed_fd = -1 };
    open_log(s);
    s->phase = WAITING; /* for the first attempt, at once */
    s->retry_at = 0;
    return OK;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* A command that prints without end must not fill the disk; its metrics are still read. */
static void keep_output(struct slot *s, const char *bytes, size_t n)
{
    ssize_t ignored = s->log_fd < 0 ? 0 : write(s->log_fd, bytes, n); /* a full disk is the ledger's to complain of */

    (void)ignored;
    s->logged += n;
    if (s->logged >= LOG_BYTES_MAX)
        note(s, "the rest of its standard output is not kept");
}

static void read_output(struct slot *s)
{
    static const size_t most = LOOK_BYTES_MAX;
    char bytes[READ_AT_ONCE];

    for (size_t total = 0; s->output_fd >= 0 && !s->output_ended && total < most;) {
        ssize_t n = read(s->output_fd, bytes, sizeof bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* nothing more for now */
        if (!n) {
            s->output_ended = 1;
            close(s->output_fd); /* or the descriptor would be readable for ever */
            s->output_fd = -1;
            return;
        }
        if (s->logged < LOG_BYTES_MAX)
            keep_output(s, bytes, (size_t)n);
        metric_output_add(&s->output, bytes, (size_t)n, &s->metrics);
        total += (size_t)n;
    }
}

static void signal_group(struct slot *s, double now)
{
    if (isinf(s->kill_at)) {
        kill(-s->pid, SIGTERM);
        s->kill_at = now + COMMAND_GRACE_SECONDS;
    }
}

/* The last line the command said, for the reason of a failure; "" without one. */
static void last_line(const struct slot *s, char *out, size_t size)
{
    char text[4096], *rest = NULL;
    int fd = s->log_fd < 0 ? -1 : open(s->log_path, O_RDONLY | O_CLOEXEC);
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

/* What became of the attempt; 1: trying again may help. */
static int judge(const struct command_runner *r, struct slot *s, int status, struct evaluation *out, struct error *why)
{
    char said[176], log[PATH_MAX + 8] = "";
    int rc, number;

    if (WIFEXITED(status) && read(s->failed_fd, &number, sizeof number) == sizeof number) {
        errno = number;
        error_system(why, "cannot run '%.300s'", r->words[0]);
        return 1;
    }
    last_line(s, said, sizeof said);
    if (s->log_fd >= 0)
        snprintf(log, sizeof log, "; see %.200s", s->log_path);
    if (s->late) {
        error_set(why, ERR_PEER, "the command ran longer than the %g s of --exec-timeout and was ended%s",
                  r->options.timeout, log);
    } else if (WIFSIGNALED(status)) {
        error_set(why, ERR_PEER, "the command was ended by signal %d (%s)%s%s", WTERMSIG(status),
                  strsignal(WTERMSIG(status)), said, log);
    } else if (WEXITSTATUS(status)) {
        error_set(why, ERR_PEER, "the command ended with exit status %d%s%s", WEXITSTATUS(status), said, log);
    } else {
        if ((rc = metric_output_finish(&s->output, &s->metrics, why)) != OK) {
            if (why && strlen(why->message) + strlen(log) < sizeof why->message)
                strcat(why->message, log);
            return 0;
        }
        out->metrics = s->metrics;
        s->metrics = (struct evaluation_metrics){ NULL, 0, 0 };
        return 0;
    }
    return 1;
}

static void release_attempt(struct slot *s)
{
    if (s->output_fd >= 0)
        close(s->output_fd);
    if (s->pid_fd >= 0)
        close(s->pid_fd);
    if (s->failed_fd >= 0)
        close(s->failed_fd);
    s->output_fd = s->pid_fd = s->failed_fd = -1;
    metric_output_release(&s->output);
    evaluation_metrics_release(&s->metrics);
}

static enum runner_state go_idle(struct slot *s, enum runner_state state)
{
    if (s->log_fd >= 0)
        close(s->log_fd);
    s->log_fd = -1;
    s->phase = IDLE;
    return state;
}

/* After an attempt that failed for a reason in why: again later, or the end of it. */
static enum runner_state after_failure(const struct command_runner *r, struct slot *s, int again, struct error *why)
{
    double pause = s->attempt < 7 ? (double)(1 << (s->attempt - 1)) : BACK_OFF_MAX;

    note(s, "%s", why->message);
    if (access(s->job->witness, F_OK) < 0 && errno == ENOENT) {
        error_set(why, ERR_IO, "deleted before the command had evaluated it (--pin keeps checkpoints until then)");
        return go_idle(s, RUNNER_GONE);
    }
    if (!again || s->attempt > r->options.retries)
        return go_idle(s, RUNNER_FAILED);
    s->phase = WAITING;
    s->retry_at = clock_monotonic() + fmin(pause, BACK_OFF_MAX);
    return RUNNER_BUSY;
}

static enum runner_state finish(struct command_runner *r, struct slot *s, struct evaluation *out, struct error *why)
{
    int status = 0, again;
    struct error reason = { 0 };
    enum runner_state state = RUNNER_DONE;

    kill(-s->pid, SIGKILL); /* what it left behind; its number is still taken by the zombie */
    while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
        ;
    note(s, "%s %d after %.3f s", WIFSIGNALED(status) ? "signal" : "exit status",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), clock_monotonic() - s->started);
    again = s->stopping ? 0 : judge(r, s, status, out, &reason);
    release_attempt(s);
    if (s->stopping)
        return go_idle(s, RUNNER_STOPPED);
    if (reason.code)
        state = after_failure(r, s, again, &reason);
    else
        go_idle(s, RUNNER_DONE);
    if (why)
        *why = reason;
    return state;
}

static enum runner_state runner_look(void *context, size_t slot, struct runner_progress *progress,
                                     struct evaluation *out, struct error *why)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];
    double now = clock_monotonic();
    siginfo_t info = { 0 };

    *progress = (struct runner_progress){ 0, NULL };
    if (s->phase == WAITING && s->stopping)
        return go_idle(s, RUNNER_STOPPED);
    if (s->phase == WAITING && now >= s->retry_at) {
        struct error reason = { 0 };

        s->attempt++;
        if (launch(r, s, &reason) != OK) {
            enum runner_state state = after_failure(r, s, 1, &reason);

            if (why)
                *why = reason;
            return state;
        }
    }
    if (s->phase == WAITING)
        return RUNNER_BUSY;
    read_output(s);
    if (s->phase == RUNNING && waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
        s->phase = LEAVING;
        s->leave_at = now + LEFT_BEHIND_SECONDS;
        if (s->pid_fd >= 0)
            close(s->pid_fd);
        s->pid_fd = -1;
        kill(-s->pid, SIGTERM);
        read_output(s);
    }
    if (s->phase == LEAVING)
        return s->output_ended || now >= s->leave_at ? finish(r, s, out, why) : RUNNER_BUSY;
    if (r->options.timeout > 0 && now - s->started >= r->options.timeout && !s->late) {
        s->late = 1;
        signal_group(s, now);
    }
    if (now >= s->kill_at) {
        kill(-s->pid, SIGKILL);
        s->kill_at = INFINITY;
    }
    return RUNNER_BUSY;
}

static void runner_stop(void *context, size_t slot)
{
    struct command_runner *r = context;
    struct slot *s = &r->slots[slot];

    s->stopping = 1;
    if (s->phase == RUNNING) {
        signal_group(s, clock_monotonic());
        s->kill_at = fmin(s->kill_at, clock_monotonic() + 1); /* whoever stops is in a hurry */
    }
}

static double runner_due(void *context)
{
    const struct command_runner *r = context;
    double now = clock_monotonic(), due = INFINITY;

    for (size_t i = 0; i < r->options.jobs; i++) {
        const struct slot *s = &r->slots[i];

        if (s->phase == WAITING)
            due = fmin(due, s->stopping ? 0 : s->retry_at - now);
        if (s->phase == LEAVING)
            due = fmin(due, s->leave_at - now);
        if (s->phase != RUNNING)
            continue;
        due = fmin(due, s->kill_at - now);
        if (r->options.timeout > 0 && !s->late)
            due = fmin(due, s->started + r->options.timeout - now);
        if (s->pid_fd < 0)
            due = fmin(due, LOOK_SECONDS);
    }
    return due > 0 ? due : 0;
}

static void runner_free(void *context)
{
    struct command_runner *r = context;

    if (!r)
        return;
    for (size_t i = 0; r->slots && i < r->options.jobs; i++) {
        struct slot *s = &r->slots[i];

        if (s->phase == RUNNING || s->phase == LEAVING) {
            kill(-s->pid, SIGKILL);
            waitpid(s->pid, NULL, 0);
            release_attempt(s);
        }
        if (s->phase != IDLE)
            go_idle(s, RUNNER_STOPPED);
    }
    if (r->poll_fd >= 0)
        close(r->poll_fd);
    free(r->slots);
    command_words_free(r->words);
    free(r);
}

int command_runner_new(struct runner *out, const struct command_runner_options *options, struct error *e)
{
    struct command_runner *r = calloc(1, sizeof *r);
    struct command_value values[VALUES];
    int rc;

    if (!r)
        return error_set(e, ERR_NOMEM, "no memory for the runner");
    r->options = *options;
    r->options.jobs = options->jobs ? options->jobs : 1;
    r->poll_fd = -1;
    for (size_t i = 0; i < VALUES; i++)
        values[i] = (struct command_value){ names[i].placeholder, NULL };
    if ((rc = command_words_split(options->command, &r->words, e)) != OK ||
        (rc = command_words_check(r->words, values, VALUES, e)) != OK) {
        error_prefix(e, "--exec");
    } else if (!(r->slots = calloc(r->options.jobs, sizeof *r->slots))) {
        rc = error_set(e, ERR_NOMEM, "no memory for %zu commands at a time", r->options.jobs);
    } else if ((r->poll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        rc = error_system(e, "no descriptor for the runner");
    } else {
        *out = (struct runner){ .name = "command", .slots = r->options.jobs, .descriptor = r->poll_fd,
                                .start = runner_start, .look = runner_look, .stop = runner_stop, .due = runner_due,
                                .free = runner_free, .context = r };
        return OK;
    }
    runner_free(r);
    return rc;
}
