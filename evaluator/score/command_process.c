#include "evaluator/score/command_process.h"

#include "base/clock.h"
#include "base/program/memory_kills.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

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
