/* The program: reads the command line, listens, tells the port, loads, and serves until it is ended. */
#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "eventlog/server/data_answer.h"
#include "eventlog/server/grpc/grpc_server.h"
#include "eventlog/server/loader.h"
#include "eventlog/server/log_roots.h"
#include "eventlog/server/sample_hints.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- server options ---------------------------------------------------------------------------------------------- */

/*
 * The command line of eventlog-server: that of TensorBoard's own data server, which TensorBoard
 * passes to whatever TENSORBOARD_DATA_SERVER_BINARY names, and options of its own. Of an option that is repeated, the
 * last counts, so that --extra_data_server_flags can overrule what TensorBoard passes.
 */

struct server_options {
    const char *logdir, *host;
    unsigned port;
    double reload; /* seconds; < 0: once */
    int verbose;
    int die_after_stdin, status, merge, follow_links, notify, extremes, report;
    int64_t chart_points;               /* 0: no limit */
    const char *port_file, *error_file; /* NULL: none */
    struct sample_hints hints;
    struct log_root roots[1 + OPTION_LIST_MOST]; /* logdir, and what --also names */
    size_t root_count;
    /* private */
    char *names[OPTION_LIST_MOST];
};

enum { PORT_DEFAULT = 6806, PORT_MOST = 65535 };

/* What the table fills in as text. */
struct texts {
    const char *port, *reload, *samples;
    int checksum;
    struct option_list also;
};

static int find_option(const char *word, const char *name, const char **value)
{
    size_t n = strlen(name);

    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, n) != 0 || (word[n + 2] && word[n + 2] != '='))
        return 0;
    *value = word[n + 2] ? word + n + 3 : NULL;
    return 1;
}

/* Options that are read first, so that errors of others can be written where the caller of the program looks for them:
 * the value of --error-file, or NULL. */
static const char *server_options_error_file(int argc, char **argv)
{
    const char *file = NULL, *value;

    for (int i = 1; i < argc; i++)
        if (find_option(argv[i], "error-file", &value))
            file = value ? value : i + 1 < argc ? argv[i + 1] : NULL;
    return file && *file ? file : NULL;
}

/* A whole number as the peer reads it: digits after an optional '+'. 1, or 0: not one, or above `most`. */
static int read_number(const char *text, uint64_t most, uint64_t *out)
{
    text += *text == '+';
    *out = 0;
    if (!*text)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || *out > most)
            return 0;
        *out = *out * 10 + (uint64_t)(*text - '0');
    }
    return *out <= most;
}

/* OK; ERR_ARG if the log directory is the URL of something that cannot be read, or empty. Pure. */
static int server_options_check_logdir(const char *logdir, struct error *e)
{
    const char *end = strstr(logdir, "://");
    size_t n = end ? (size_t)(end - logdir) : 0;

    if (!*logdir)
        return error_set(e, ERR_ARG, "empty --logdir");
    if (!n || !((logdir[0] | 0x20) >= 'a' && (logdir[0] | 0x20) <= 'z'))
        return OK;
    for (size_t i = 0; i < n; i++) {
        char c = logdir[i], lower = (char)(c | 0x20);

        if (!((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))
            return OK;
    }
    if (n == 2 && !memcmp(logdir, "gs", 2))
        return error_set(e, ERR_ARG, "this data server does not read gs:// (TensorBoard's own loaders do)");
    return error_set(e, ERR_ARG, "unknown protocol \"%.*s\" in logdir %s", (int)n, logdir, logdir);
}

static int add_roots(struct server_options *o, const struct option_list *also, struct error *e)
{
    if (o->logdir)
        o->roots[o->root_count++] = (struct log_root){ o->logdir, NULL };
    for (size_t i = 0; i < also->count; i++) {
        const char *equals = strchr(also->items[i], '=');

        if (!equals || equals == also->items[i] || !equals[1])
            return error_set(e, ERR_ARG, "--also: '%s' is not NAME=DIR", also->items[i]);
        for (size_t k = 0; k < i; k++)
            if (strncmp(also->items[k], also->items[i], (size_t)(equals - also->items[i]) + 1) == 0)
                return error_set(e, ERR_ARG, "--also: '%s' has the name of '%s'; give each its own", also->items[i],
                                 also->items[k]);
        if (!(o->names[i] = strndup(also->items[i], (size_t)(equals - also->items[i]))))
            return error_memory(e, NULL, "for --also");
        o->roots[o->root_count++] = (struct log_root){ equals + 1, o->names[i] };
    }
    return OK;
}

/* What the texts say. */
static int understand(struct server_options *o, const struct texts *t, int positional, char **argv, struct error *e)
{
    uint64_t number = PORT_DEFAULT;

    if (positional)
        return error_set(e, ERR_ARG, "'%s' is not an option; the log directory is --logdir DIR", argv[1]);
    if (!o->logdir && !t->also.count)
        return error_set(e, ERR_ARG, "which log? --logdir DIR is required");
    if (t->port && !read_number(t->port, PORT_MOST, &number))
        return error_set(e, ERR_ARG, "--port: '%s' is not a number from 0 to 65535", t->port);
    o->port = (unsigned)number;
    if ((o->port_file && !*o->port_file) || (o->error_file && !*o->error_file) || !*o->host)
        return error_set(e, ERR_ARG, "--%s: needs a value",
                         !*o->host                        ? "host"
                         : o->port_file && !*o->port_file ? "port-file"
                                                          : "error-file");
    number = 5;
    if (strcmp(t->reload, "once") != 0 && !read_number(t->reload, 1000000000, &number))
        return error_set(e, ERR_ARG, "--reload: '%s' is neither whole seconds nor 'once'", t->reload);
    o->reload = strcmp(t->reload, "once") != 0 ? (double)number : -1;
    if (sample_hints_read(&o->hints, t->samples, e) != OK)
        return ERR_ARG;
    return add_roots(o, &t->also, e);
}

/* "-vv" as "-v" "-v". The words stay in *out, which ends with NULL. */
static int split_letters(int argc, char **argv, char ***out, int *count)
{
    static char letter[] = "-v";
    size_t most = 1;

    for (int i = 0; i < argc; i++)
        most += strlen(argv[i]) + 1;
    if (!(*out = malloc(most * sizeof **out)))
        return 0;
    *count = 0;
    for (int i = 0; i < argc; i++) {
        size_t n = strspn(argv[i] + (argv[i][0] == '-'), "v");

        if (argv[i][0] != '-' || n < 2 || argv[i][n + 1])
            (*out)[(*count)++] = argv[i];
        else
            for (size_t k = 0; k < n; k++)
                (*out)[(*count)++] = letter;
    }
    (*out)[*count] = NULL;
    return 1;
}

/* OPTIONS_RUN; OPTIONS_DONE: help or the version was printed; ERR_ARG; ERR_NOMEM. Texts are borrowed from argv. */
static int server_options_read(struct server_options *o, int argc, char **argv, struct error *e)
{
    struct texts t = { .reload = "5", .samples = "" };
    int verbose = 0, positional = 0, count, rc;
    char **words;
    struct option table[] = {
        { OPTION_HEADING, .help = "What TensorBoard passes" },
        { OPTION_TEXT, .name = "logdir", .value = &o->logdir, .argument = "DIR",
          .help = "Show the runs of this log directory. It may appear later." },
        { OPTION_TEXT, .name = "reload", .value = &t.reload, .argument = "SECONDS",
          .help = "Look for changes that are not notified every SECONDS (5), or read everything 'once'." },
        { OPTION_TEXT, .name = "samples-per-plugin", .value = &t.samples, .argument = "PLUGIN=N,...",
          .help = "Give at most N points of a series of that plugin, or 'all'. All points are kept in any case; "
                  "TensorBoard asks for as many as its own --samples_per_plugin says." },
        { OPTION_TEXT, .name = "host", .value = &o->host, .argument = "HOST",
          .help = "Listen on this host's addresses (localhost). Whoever reaches them can read the logs." },
        { OPTION_TEXT, .name = "port", .value = &t.port, .argument = "N",
          .help = "Listen on this port (6806); 0: any free one." },
        { OPTION_TEXT, .name = "port-file", .value = &o->port_file, .argument = "FILE",
          .help = "Write the port to FILE when listening." },
        { OPTION_TEXT, .name = "error-file", .value = &o->error_file, .argument = "FILE",
          .help = "Write the error to FILE if starting fails." },
        { OPTION_FLAG, .name = "die-after-stdin", .value = &o->die_after_stdin,
          .help = "End when standard input ends." },
        { OPTION_FLAG, .letter = 'v', .name = "verbose", .value = &verbose, .help = "Tell more. May be repeated." },
        { OPTION_FLAG, .name = "checksum", .value = &t.checksum, .help = "Verify checksums (always done)." },
        { OPTION_HEADING, .help = "More" },
        { OPTION_LIST, .name = "also", .value = &t.also, .argument = "NAME=DIR",
          .help = "Show the runs of DIR, too, as NAME/RUN. May be repeated." },
        { OPTION_FLAG, .name = "extremes", .value = &o->extremes,
          .help = "Thin out curves so that each stretch keeps its lowest and highest point, instead of by chance." },
        { OPTION_INT, .name = "chart-points", .value = &o->chart_points, .argument = "N", .maximum = 1000000000,
          .help =
              "Thin out curves so that those of an answer, which is a chart, have at most N points together, but not "
              "below 200 of each (no limit)." },
        { OPTION_FLAG, .name = "merge", .value = &o->merge,
          .help = "Merge files of one run that were written at the same time, by step (default). With --no-merge a "
                  "file replaces what comes before it from its first step on, as in TensorBoard's own data server." },
        { OPTION_FLAG, .name = "follow-links", .value = &o->follow_links,
          .help = "Follow symbolic links that lead out of the log directory." },
        { OPTION_FLAG, .name = "notify", .value = &o->notify,
          .help = "Read what is written as soon as the system notifies of it (default); --no-notify: only every "
                  "--reload seconds." },
        { OPTION_FLAG, .name = "report", .value = &o->report,
          .help = "Show what could not be read as a text, in a run 'eventlog-server'." },
        { OPTION_FLAG, .name = "status", .value = &o->status,
          .help = "Tell every second on a terminal, while it loads, how much has been read." },
    };
    const struct options options = {
        .program = "eventlog-server",
        .usage = "--logdir DIR [OPTION...]",
        .summary = "Serve a log directory to TensorBoard, which starts it itself if the environment variable "
                   "TENSORBOARD_DATA_SERVER_BINARY names it, or connects to it with --grpc_data_provider. Every point "
                   "is kept; damaged records are left out, and what follows them is read.",
        .examples = "  TENSORBOARD_DATA_SERVER_BINARY=$(command -v eventlog-server) tensorboard --logdir runs\n"
                    "  eventlog-server --logdir runs --port 6806 &\n"
                    "  tensorboard --grpc_data_provider=localhost:6806\n",
        .table = table,
        .count = sizeof table / sizeof *table,
    };

    *o = (struct server_options){ .host = "localhost", .merge = 1, .notify = 1 };
    if (!split_letters(argc, argv, &words, &count))
        return error_memory(e, NULL, "for the command line");
    rc = options_parse(&options, count, words, &positional, e);
    if (rc == OPTIONS_RUN)
        rc = understand(o, &t, positional, words, e);
    for (size_t i = 0; i < options.count; i++)
        if (table[i].value == &verbose)
            o->verbose = table[i].given;
    free(words);
    return rc;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

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
