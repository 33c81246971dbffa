/* The program: reads the command line, listens, tells the port, loads, and serves until it is ended. */
#include "base/clock.h"
#include "base/file.h"
#include "base/program/log.h"
#include "eventlog/server/data_answer.h"
#include "eventlog/server/grpc/grpc_server.h"
#include "eventlog/server/loader.h"
#include "eventlog/server/server_options.h"

#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* the peer's statuses */
enum { EXIT_SERVED = 0, EXIT_FAILED = 1, EXIT_USAGE_ERROR = 2, EXIT_LOGDIR = 8, EXIT_BIND = 9 };

struct program {
    struct server_options options;
    struct data_source source;
    struct snapshot snapshot;
    struct loader *loader;
    struct grpc_server *server;
    pthread_mutex_t lock; /* of log */
    struct log log;
};

/* ---- messages -------------------------------------------------------------------------------------------------- */

/* Where TensorBoard looks for it: in the error file, or on standard error. */
static int fail(struct program *p, const char *error_file, int status, const char *message)
{
    struct error why = { 0 };
    int fd = -1, written = error_file && file_open_named(error_file, O_WRONLY | O_CREAT | O_TRUNC, &fd, &why) == OK &&
                           dprintf(fd, "%s\n", message) > 0;

    if (fd >= 0 && close(fd) < 0)
        written = 0;
    if (why.code == ERR_ARG)
        log_line(&p->log, "--error-file: %s", why.message);
    if (!written)
        log_line(&p->log, "%s", message);
    return status;
}

static void message(void *context, enum loader_level level, const char *text)
{
    struct program *p = context;

    if (level > LOADER_WARNING && !p->options.verbose)
        return;
    pthread_mutex_lock(&p->lock);
    log_line(&p->log, "%s", text);
    pthread_mutex_unlock(&p->lock);
}

/* Every second, while it loads the first time: how far it is. */
static void *show_status(void *context)
{
    struct program *p = context;
    const double began = clock_monotonic();
    double looked = began;
    uint64_t bytes = 0;

    for (;;) {
        const struct loader_progress now = loader_progress(p->loader);
        const double at = clock_monotonic(), speed = (double)(now.bytes - bytes) / 1e6 / (at - looked + 1e-9);

        pthread_mutex_lock(&p->lock);
        if (now.rounds)
            log_progress_end(&p->log);
        else
            log_progress(&p->log, "%zu runs, %.1f million points, %.0f MB in %.0f s, %.0f MB/s", now.runs,
                         (double)now.points / 1e6, (double)now.bytes / 1e6, at - began, speed);
        pthread_mutex_unlock(&p->lock);
        if (now.rounds)
            return NULL;
        looked = at;
        bytes = now.bytes;
        sleep(1);
    }
}

/* ---- ends ------------------------------------------------------------------------------------------------------ */

static void *wait_for_stdin(void *context)
{
    char bytes[256];
    ssize_t n;

    (void)context;
    while ((n = read(0, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        ;
    _exit(EXIT_SERVED);
}

static int start_thread(void *(*run)(void *context), void *context)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, run, context) == 0 && pthread_detach(thread) == 0;
}

/* ---- start ----------------------------------------------------------------------------------------------------- */

/* One write of "PORT\n". 0 and errno. The path may be a link: serve gives /dev/fd/N. */
static int write_port(const char *path, unsigned port)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%u\n", port), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
        good;

    if (fd < 0)
        return 0;
    good = write(fd, text, (size_t)n) == n;
    return close(fd) == 0 && good;
}

static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* glibc gives each thread an arena of its own, which grows by one page and one system call at a time, and these calls
 * wait for each other: with 5,000 runs there were 3,364 of them. One arena grows by megabytes. */
static void use_one_arena(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, 1 << 20);
#endif
}

static int answer(void *context, const struct grpc_call *call, struct buffer *messages, char *text, size_t size)
{
    struct program *p = context;
    const struct data_patience patience = { call->deadline, call->cancelled };
    enum data_method method = data_request_method(call->path, strlen(call->path));
    char explanation[DATA_ANSWER_MESSAGE] = "";
    struct data_request request;
    struct error e = { 0 };
    enum data_code code;
    int rc;

    *text = 0;
    if (method == DATA_METHODS)
        return DATA_UNIMPLEMENTED;
    if ((rc = data_request_read(&request, method, call->message, call->length, &e)) != OK) {
        snprintf(text, size, "%s", e.message);
        return DATA_INTERNAL;
    }
    code = data_answer(&p->source, &request, &patience, messages, explanation);
    data_request_release(&request);
    snprintf(text, size, "%s", explanation);
    return (int)code;
}

static int load_and_serve(struct program *p, struct error *e)
{
    const struct loader_options loading = {
        .roots = p->options.roots,
        .root_count = p->options.root_count,
        .reload = p->options.reload,
        .merge = p->options.merge,
        .follow_links = p->options.follow_links,
        .report = p->options.report,
        .notify = p->options.notify,
        .message = message,
        .context = p,
    };
    const struct grpc_service service = { p, answer };
    int rc;

    if (snapshot_init(&p->snapshot) != OK || !(p->source.values = value_source_new()))
        return error_memory(e, NULL, "to serve");
    p->source.snapshot = &p->snapshot;
    p->source.location = p->options.logdir ? p->options.logdir : p->options.roots[0].path;
    p->source.hints = p->options.hints;
    p->source.extremes = p->options.extremes;
    p->source.most = (size_t)p->options.chart_points;
    if ((rc = loader_start(&p->loader, &loading, &p->snapshot, e)) != OK)
        return rc;
    if (p->options.status && p->log.terminal)
        start_thread(show_status, p);
    rc = grpc_server_run(p->server, &service, e);
    loader_stop(p->loader);
    return rc;
}

int main(int argc, char **argv)
{
    static struct program p;
    const char *error_file = server_options_error_file(argc, argv);
    struct error e = { 0 };
    int rc;

    use_one_arena();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* makes a write past the file size limit fail, like a full disk */
    pthread_mutex_init(&p.lock, NULL);
    log_init(&p.log, "eventlog-server", 2);
    if ((rc = server_options_read(&p.options, argc, argv, &e)) == OPTIONS_DONE)
        return EXIT_SERVED;
    if (rc != OPTIONS_RUN)
        return fail(&p, error_file, EXIT_USAGE_ERROR, e.message);
    for (size_t i = 0; i < p.options.root_count; i++)
        if (server_options_check_logdir(p.options.roots[i].path, &e) != OK)
            return fail(&p, error_file, EXIT_LOGDIR, e.message);
    if (grpc_server_listen(&p.server, p.options.host, p.options.port, &e) != OK)
        return fail(&p, error_file, EXIT_BIND, e.message);
    if (!p.options.port_file) {
        log_line(&p.log, "listening on %s", grpc_server_address(p.server));
    } else if (!write_port(p.options.port_file, grpc_server_port(p.server))) {
        log_line(&p.log, "Failed to write port \"%u\" to %s: %s", grpc_server_port(p.server), p.options.port_file,
                 strerror(errno));
        return EXIT_FAILED;
    }
    raise_descriptors();
    if (p.options.die_after_stdin && !start_thread(wait_for_stdin, NULL))
        return fail(&p, error_file, EXIT_FAILED, "cannot start a thread");
    if (load_and_serve(&p, &e) != OK)
        return fail(&p, NULL, EXIT_FAILED, e.message);
    return EXIT_SERVED;
}
