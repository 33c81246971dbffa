/* eventlog serve: TensorBoard over eventlog-server, both started and ended together. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "eventlog/tool/command.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SERVER_PORT = 6806,    /* its own default */
    CHART_POINTS = 200000, /* a page with more is slow */
    EVERY_POINT = 1 << 30, /* more than a curve has */
    LINKS_EVERY = 10,      /* seconds */
    WORDS = 16 + OPTION_LIST_MOST,
    WORD = 64,
    PATIENCE = 5 /* seconds before a child that does not end is killed */
};

struct program {
    const char *name;
    pid_t pid;  /* 0: not running */
    int status; /* of waitpid(), once it has ended */
};

struct serve {
    /* the command line */
    const char *logdir, *host, *tensorboard;
    struct option_list also;
    int64_t port, samples; /* port -1: the program's own default; samples 0: every point */
    int server_only;
    char links[PATH_MAX]; /* a directory of links to several log directories; "": none */
    /* the two programs */
    struct program server, page;
    sigset_t mask; /* as it was */
    int signals;   /* a signalfd */
    int alive;     /* the server ends when this, its standard input, is closed, so also if we are killed */
    int said;      /* what TensorBoard says, -1: it said all */
    int shown;     /* 1: its address is printed */
    struct buffer line;
    struct log log, relay;
};

/* ---- the programs ---------------------------------------------------------------------------------------------- */

/* Sets out (PATH_MAX bytes) to a program by its path from the directory of this one. 0: there is none. */
static int find_beside(const char *path, char *out)
{
    const size_t room = strlen(path) + 1;
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - room);

    while (n > 0 && out[n - 1] != '/')
        n--;
    if (n <= 0)
        return 0;
    memcpy(out + n, path, room);
    return file_is_program(out);
}

/* The server beside this program, as they are built and installed, else on PATH. */
static int find_server(char *out)
{
    return find_beside("eventlog-server", out) || file_find_program("eventlog-server", out);
}

/* The one on PATH, else the one that `make demo` has installed beside the programs that it built. */
static int find_page(struct serve *s, char *out)
{
    if (!s->tensorboard)
        return file_find_program("tensorboard", out) || find_beside("../venv/bin/tensorboard", out);
    if (!strchr(s->tensorboard, '/'))
        return file_find_program(s->tensorboard, out);
    return snprintf(out, PATH_MAX, "%s", s->tensorboard) < PATH_MAX && file_is_program(out);
}

/* In a new process: becomes the program, which ends when this one does. Its standard input is `in`; its output goes to
 * `out`, -1: where ours goes. */
static void become(const struct serve *s, pid_t parent, int in, int out, char **words)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_USAGE);
    setpgid(0, 0); /* Ctrl-C is for us, who end it */
    signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
    setenv("no_grpc_proxy", "localhost", 1); /* gRPC would ask the proxy of the environment for this machine, too */
    if (dup2(in, 0) >= 0 && (out < 0 || (dup2(out, 1) >= 0 && dup2(out, 2) >= 0)))
        execv(words[0], words);
    dprintf(2, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static int start(struct serve *s, struct program *p, int in, int out, char **words)
{
    pid_t parent = getpid();

    p->pid = fork();
    if (p->pid == 0)
        become(s, parent, in, out, words);
    if (p->pid > 0) {
        setpgid(p->pid, p->pid); /* whoever comes first */
        return 1;
    }
    p->pid = 0;
    log_line(&s->log, "cannot start %s: %s", p->name, strerror(errno));
    return 0;
}

/* Appends what the log is, as options of the server. */
static size_t add_log(const struct serve *s, char **words, size_t n, char (*texts)[PATH_MAX + WORD])
{
    if (s->logdir) {
        snprintf(*texts, sizeof *texts, "--logdir=%s", s->logdir);
        words[n++] = *texts++;
    }
    for (size_t i = 0; i < s->also.count; i++) {
        snprintf(*texts, sizeof *texts, "--also=%s", s->also.items[i]);
        words[n++] = *texts++;
    }
    return n;
}

/* ---- a directory for what TensorBoard reads by itself ----------------------------------------------------------- */

static void link_one(const struct serve *s, const char *directory, const char *below, const char *name)
{
    char real[PATH_MAX], to[2 * PATH_MAX], path[sizeof s->links + PATH_MAX];

    if (strchr(name, '/') || !realpath(directory, real)) /* one that is not there yet is linked later */
        return;
    snprintf(to, sizeof to, "%s%s%s", real, *below ? "/" : "", below);
    snprintf(path, sizeof path, "%s/%s", s->links, name);
    if (symlink(to, path) != 0)
        errno = 0; /* it is there already, or that plugin will not show this run */
}

/* Links to what is in the log directory and to those with names, as the names of runs have it. */
static void make_links(const struct serve *s)
{
    DIR *d = s->logdir ? opendir(s->logdir) : NULL;

    for (size_t i = 0; i < s->also.count; i++) {
        const char *equals = strchr(s->also.items[i], '=');
        char name[NAME_MAX + 1];

        if ((size_t)snprintf(name, sizeof name, "%.*s", (int)(equals - s->also.items[i]), s->also.items[i]) <
            sizeof name)
            link_one(s, equals + 1, "", name);
    }
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            link_one(s, s->logdir, entry->d_name, entry->d_name);
    if (d)
        closedir(d);
}

static void remove_links(const struct serve *s)
{
    DIR *d = *s->links ? opendir(s->links) : NULL;

    for (struct dirent *entry; d && (entry = readdir(d));)
        if (entry->d_type == DT_LNK)
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    if (*s->links)
        rmdir(s->links);
}

/* Where plugins find the files that they read by themselves: the log directory, or one of links. NULL: nowhere. */
static const char *files_of(struct serve *s)
{
    const char *temporary = getenv("TMPDIR");

    if (!s->also.count)
        return s->logdir;
    if (snprintf(s->links, sizeof s->links, "%s/eventlog-serve.XXXXXX", temporary && *temporary ? temporary : "/tmp") >=
            (int)sizeof s->links ||
        !mkdtemp(s->links)) {
        *s->links = '\0';
        return s->logdir;
    }
    make_links(s);
    return s->links;
}

/* ---- starting them --------------------------------------------------------------------------------------------- */

/* Waits for the server's port on fd. 0: it ended without one, and said why. */
static int read_port(int fd, unsigned *port)
{
    char text[16] = "";
    size_t n = 0;
    ssize_t got;

    while (n + 1 < sizeof text && !strchr(text, '\n')) {
        got = read(fd, text + n, sizeof text - 1 - n);
        if (got <= 0 && errno != EINTR)
            return 0;
        n += got > 0 ? (size_t)got : 0;
    }
    return sscanf(text, "%u", port) == 1;
}

static int start_server(struct serve *s, char *program, char (*texts)[PATH_MAX + WORD], unsigned *port)
{
    static char any[] = "--port=0", end[] = "--die-after-stdin", extremes[] = "--extremes";
    char file[WORD], points[WORD], *words[WORDS] = { program, any, end, file, extremes };
    size_t n = 5;
    int input[2], answer[2], good;

    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(answer, 0) != 0) {
        log_line(&s->log, "cannot make a pipe: %s", strerror(errno));
        return 0;
    }
    fcntl(answer[0], F_SETFD, FD_CLOEXEC);
    s->alive = input[1];
    snprintf(file, sizeof file, "--port-file=/dev/fd/%d", answer[1]);
    snprintf(points, sizeof points, "--chart-points=%d", CHART_POINTS);
    if (!s->samples)
        words[n++] = points;
    add_log(s, words, n, texts);
    good = start(s, &s->server, input[0], -1, words);
    close(input[0]);
    close(answer[1]);
    good = good && read_port(answer[0], port);
    close(answer[0]);
    return good;
}

static int start_page(struct serve *s, char *program, unsigned port)
{
    char provider[WORD], number[WORD], samples[WORD], host[PATH_MAX], logdir[PATH_MAX + WORD];
    char *words[WORDS] = { program, provider };
    const char *files = files_of(s);
    int out[2], nothing = open("/dev/null", O_RDONLY | O_CLOEXEC), good;
    size_t n = 2;

    if (nothing < 0 || pipe2(out, O_CLOEXEC) != 0) {
        log_line(&s->log, "cannot start %s: %s", s->page.name, strerror(errno));
        return 0;
    }
    snprintf(provider, sizeof provider, "--grpc_data_provider=localhost:%u", port);
    if (s->port >= 0) {
        snprintf(number, sizeof number, "--port=%d", (int)s->port);
        words[n++] = number;
    }
    if (s->host) {
        snprintf(host, sizeof host, "--host=%s", s->host);
        words[n++] = host;
    }
    snprintf(samples, sizeof samples, "--samples_per_plugin=scalars=%lld",
             s->samples ? (long long)s->samples : (long long)EVERY_POINT);
    words[n++] = samples;
    snprintf(logdir, sizeof logdir, "--logdir=%s", files ? files : "");
    if (files) /* with a data provider, only for plugins that read files themselves */
        words[n++] = logdir;
    good = start(s, &s->page, nothing, out[1], words);
    close(nothing);
    close(out[1]);
    s->said = out[0];
    return good;
}

/* ---- while they run -------------------------------------------------------------------------------------------- */

static void show_address(struct serve *s, const char *address)
{
    int n = (int)strcspn(address, " ");

    printf("TensorBoard: %.*s (Ctrl-C ends it)\n", n, address);
    fflush(stdout);
    s->shown = 1;
}

/* Passes on a line of TensorBoard's, except for its address, which is printed for the user once it listens. */
static void pass_on(struct serve *s, const char *line)
{
    const char *address = strncmp(line, "TensorBoard ", 12) ? NULL : strstr(line, " at http");

    if (address && !s->shown)
        show_address(s, address + 4);
    else if (*line)
        log_line(&s->relay, "%s", line);
}

static void read_said(struct serve *s)
{
    char bytes[4096];
    ssize_t n = read(s->said, bytes, sizeof bytes);

    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n' && s->line.length < sizeof bytes) {
            buffer_append_byte(&s->line, (unsigned char)bytes[i]);
            continue;
        }
        pass_on(s, buffer_text(&s->line));
        buffer_clear(&s->line);
    }
    if (n > 0 || (n < 0 && errno == EINTR))
        return;
    if (s->line.length)
        pass_on(s, buffer_text(&s->line));
    close(s->said);
    s->said = -1;
}

/* Notes which of them have ended. */
static void note_ends(struct serve *s)
{
    struct program *both[] = { &s->server, &s->page };

    for (size_t i = 0; i < 2; i++)
        if (both[i]->pid > 0 && waitpid(both[i]->pid, &both[i]->status, WNOHANG) == both[i]->pid)
            both[i]->pid = 0;
}

/* Waits for a signal, or for what TensorBoard says, until `seconds` have passed, < 0: for ever. The signal that asks us
 * to end, or 0. */
static int wait_for_news(struct serve *s, double seconds)
{
    struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN }, { .fd = s->said, .events = POLLIN } };
    struct signalfd_siginfo news;
    int asked = 0;

    if (poll(fds, 2, seconds < 0 ? -1 : (int)(seconds * 1000) + 1) <= 0)
        return 0;
    if (fds[1].revents)
        read_said(s);
    if (fds[0].revents && read(s->signals, &news, sizeof news) == sizeof news && news.ssi_signo != SIGCHLD)
        asked = (int)news.ssi_signo;
    note_ends(s);
    return asked;
}

static void signal_both(struct serve *s, int number)
{
    if (s->page.pid > 0)
        kill(-s->page.pid, number);
    if (s->server.pid > 0)
        kill(-s->server.pid, number);
}

/* Ends both. Asked again meanwhile, or if they do not end, it kills them. */
static void end_both(struct serve *s)
{
    double until = clock_monotonic() + (double)PATIENCE;

    close(s->alive);
    signal_both(s, SIGTERM);
    while (s->page.pid > 0 || s->server.pid > 0) {
        double left = until - clock_monotonic();

        if (left < 0 || wait_for_news(s, left)) {
            signal_both(s, SIGKILL);
            until = clock_monotonic() + (double)PATIENCE;
        }
    }
}

static void tell_end(struct serve *s, const struct program *p)
{
    const char *when = s->shown ? "" : " before it listened";

    if (WIFSIGNALED(p->status))
        log_line(&s->log, "%s was ended by signal %d (%s)%s", p->name, WTERMSIG(p->status),
                 strsignal(WTERMSIG(p->status)), when);
    else
        log_line(&s->log, "%s ended with status %d%s", p->name, WEXITSTATUS(p->status), when);
}

/* Blocks the signals that end us, which are read from s->signals from now on. */
static int take_signals(struct serve *s)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &s->mask);
    return (s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) >= 0;
}

static int serve_page(struct serve *s, char *server, char (*texts)[PATH_MAX + WORD])
{
    char page[PATH_MAX];
    unsigned port;
    int asked = 0;

    if (!find_page(s, page)) {
        log_line(&s->log,
                 "%s: no such program%s; install it with 'pip install tensorboard', and activate that virtual "
                 "environment, or give its path with --tensorboard; --server-only serves without it",
                 s->tensorboard ? s->tensorboard : "tensorboard", s->tensorboard ? "" : " on PATH");
        return EXIT_USAGE;
    }
    if (!take_signals(s)) {
        log_line(&s->log, "cannot wait for signals: %s", strerror(errno));
        return EXIT_USAGE;
    }
    if (!start_server(s, server, texts, &port) || !start_page(s, page, port)) {
        end_both(s);
        return EXIT_NO;
    }
    while (!asked && s->server.pid > 0 && s->page.pid > 0) {
        asked = wait_for_news(s, *s->links ? LINKS_EVERY : -1);
        if (*s->links)
            make_links(s);
    }
    while (!asked && s->page.pid == 0 && s->said >= 0) /* its last words */
        read_said(s);
    if (!asked)
        tell_end(s, s->page.pid ? &s->server : &s->page);
    end_both(s);
    return asked ? EXIT_DONE : EXIT_NO;
}

/* Becomes the server, which prints where it listens. */
static int serve_data(struct serve *s, char *server, char (*texts)[PATH_MAX + WORD])
{
    char number[WORD], host[PATH_MAX], *words[WORDS] = { server, NULL };
    size_t n = add_log(s, words, 1, texts);

    if (s->port >= 0) {
        snprintf(number, sizeof number, "--port=%d", (int)s->port);
        words[n++] = number;
    }
    if (s->host) {
        snprintf(host, sizeof host, "--host=%s", s->host);
        words[n++] = host;
    }
    execv(server, words);
    log_line(&s->log, "%s: %s", server, strerror(errno));
    return EXIT_USAGE;
}

/* ---- the port -------------------------------------------------------------------------------------------------- */

/* Whether nobody listens there. Of a host that is no number only the program that listens can tell. */
static int is_free(const char *host, int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, taken;

    taken = fd >= 0 &&
            inet_pton(AF_INET, host && strcmp(host, "localhost") ? host : "127.0.0.1", &address.sin_addr) == 1 &&
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == EADDRINUSE;
    if (fd >= 0)
        close(fd);
    return !taken;
}

/* Asked before anything is started: TensorBoard takes seconds to find out, and says it among other things. */
static int check_port(struct serve *s)
{
    const int port = s->port >= 0 ? (int)s->port : s->server_only ? SERVER_PORT : 0;

    if (!port || is_free(s->host, port))
        return 1;
    log_line(&s->log, "port %d of %s is taken; give another one with --port, or any free one with --port 0", port,
             s->host ? s->host : "localhost");
    return 0;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

/* NAME=DIR, unless there is a file of that whole name. */
static const char *directory_of(const char *word)
{
    const char *equals = strchr(word, '=');

    return equals && equals != word && equals[1] && access(word, F_OK) != 0 ? equals + 1 : NULL;
}

/* 1, or 0: it is no directory. One that is missing may come later. */
static int check_directory(struct serve *s, const char *path)
{
    struct stat found;
    int missing;

    if (strlen(path) >= PATH_MAX) {
        log_line(&s->log, "the path of a directory is too long: %.60s...", path);
        return 0;
    }
    if (stat(path, &found) == 0) {
        if (!S_ISDIR(found.st_mode))
            log_line(&s->log, "%s: not a directory; give the directory of the log", path);
        return S_ISDIR(found.st_mode);
    }
    missing = errno == ENOENT;
    log_line(&s->log, "%s: %s%s", path, strerror(errno), missing ? "; its runs are shown once it is there" : "");
    return missing;
}

/* An earlier NAME=DIR of the same name, or NULL. */
static const char *same_name(const struct serve *s, const char *word)
{
    const size_t length = (size_t)(strchr(word, '=') - word) + 1;

    for (size_t i = 0; i < s->also.count; i++)
        if (strncmp(s->also.items[i], word, length) == 0)
            return s->also.items[i];
    return NULL;
}

static int take_paths(struct serve *s, char **words, int count)
{
    for (int i = 0; i < count; i++) {
        const char *directory = directory_of(words[i]), *same = directory ? same_name(s, words[i]) : NULL;

        if (!check_directory(s, directory ? directory : words[i]))
            return 0;
        if (same) {
            log_line(&s->log, "%s: has the name of %s; give each its own", words[i], same);
            return 0;
        }
        if (directory && !option_list_add(&s->also, words[i])) {
            log_line(&s->log, "%s: there can be at most %d directories with a name", words[i], OPTION_LIST_MOST);
            return 0;
        }
        if (!directory && s->logdir) {
            log_line(&s->log, "%s: a second log directory needs a name: NAME=%s", words[i], words[i]);
            return 0;
        }
        if (!directory)
            s->logdir = words[i];
    }
    return 1;
}

int command_serve(int argc, char **argv)
{
    struct serve s = { .port = -1,
                       .said = -1,
                       .server = { .name = "eventlog-server" },
                       .page = { .name = "tensorboard" },
                       .line = BUFFER_EMPTY };
    struct option table[] = {
        { OPTION_INT, .name = "port", .value = &s.port, .argument = "N", .minimum = 0, .maximum = 65535,
          .help = "Listen on this port (6006, or if it is taken the next free one; 6806 with --server-only). 0: any "
                  "free port." },
        { OPTION_TEXT, .name = "host", .value = &s.host, .argument = "HOST",
          .help = "Listen on this host's addresses (localhost). Whoever reaches them can read the logs." },
        { OPTION_INT, .name = "samples", .value = &s.samples, .argument = "N", .minimum = 1, .maximum = 1000000000,
          .help = "Show at most N points of a curve, the lowest and the highest of each stretch (every point of up to "
                  "200,000 in a chart; beyond, as many as these, but 200 of each curve)." },
        { OPTION_TEXT, .name = "tensorboard", .value = &s.tensorboard, .argument = "FILE",
          .help = "Start this TensorBoard (the one on PATH, or else the one that 'make demo' installed)." },
        { OPTION_FLAG, .name = "server-only", .value = &s.server_only,
          .help = "Start no TensorBoard; serve those that connect with --grpc_data_provider=HOST:PORT." },
    };
    const struct options options = {
        .program = "eventlog serve",
        .usage = "[OPTION...] LOGDIR [NAME=DIR...]",
        .summary = "Start TensorBoard on a log directory with all its points, whatever damage or interleaved files it "
                   "has, and print its address. The runs of each NAME=DIR are shown as NAME/RUN. Ctrl-C ends "
                   "TensorBoard and the data server below it. Exit status: 0 ended by a signal; 1 the port is "
                   "taken, or TensorBoard or the server failed; 2 usage, or one of the two programs is missing.",
        .examples = "  eventlog serve runs\n"
                    "  eventlog serve mine=runs theirs=/srv/runs --port 0\n"
                    "  eventlog serve runs --samples 100000\n"
                    "  eventlog serve runs --server-only    then: tensorboard --grpc_data_provider=localhost:6806\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "which log directory?",
    };
    char(*texts)[PATH_MAX + WORD], server[PATH_MAX];
    struct error e = { 0 };
    int positional, rc;

    log_init(&s.log, "eventlog serve", 2);
    log_init(&s.relay, NULL, 2);
    if ((rc = options_parse(&options, argc, argv, &positional, &e)) != OPTIONS_RUN) {
        if (rc != OPTIONS_DONE)
            log_line(&s.log, "%s", e.message);
        return rc == OPTIONS_DONE ? EXIT_DONE : EXIT_USAGE;
    }
    if (s.server_only && (s.tensorboard || options_given(&options, "samples"))) {
        log_line(&s.log, "--samples and --tensorboard are for TensorBoard, which --server-only does not start");
        return EXIT_USAGE;
    }
    if (!take_paths(&s, argv + 1, positional))
        return EXIT_USAGE;
    if (!find_server(server)) {
        log_line(&s.log,
                 "eventlog-server is neither beside this program nor on PATH; building it takes libnghttp2-dev");
        return EXIT_USAGE;
    }
    if (!check_port(&s))
        return EXIT_NO;
    if (!(texts = calloc(1 + OPTION_LIST_MOST, sizeof *texts))) {
        log_line(&s.log, "out of memory");
        return EXIT_USAGE;
    }
    rc = s.server_only ? serve_data(&s, server, texts) : serve_page(&s, server, texts);
    remove_links(&s);
    buffer_release(&s.line);
    free(texts);
    return rc;
}
