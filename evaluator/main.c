/*
 * evaluator - evaluates every checkpoint of a running training once, and writes curves for TensorBoard.
 */
#include "base/file.h"
#include "evaluator/evaluation_loop.h"
#include "evaluator/evaluator_options.h"
#include "evaluator/record/ledger.h"
#include "evaluator/score/builtin_runner.h"
#include "evaluator/score/command_runner.h"
#include "evaluator/score/metrics/metric.h"
#include "evaluator/score/thread_runner.h"
#include "evaluator/tool/command.h"
#include "evaluator/watch_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PINNED_MAX = 100000,  /* how many may wait pinned, which needs no descriptors */
    EVENT_FILES_OPEN = 16 /* with several directories */
};

/* How many checkpoints may wait with open files: a quarter of the available descriptors, since each has its index and
 * at least one data file. */
static size_t queue_limit(void)
{
    size_t count = file_open_limit(4096) / 4;

    return count < 8 ? 8 : count;
}

/* The only variable outside a struct: a signal handler gets no context. signalfd needs no handler, but only sees
 * signals that all threads block, and libraries start threads before main() does. */
static volatile sig_atomic_t signal_pipe = -1;

static void on_signal(int number)
{
    unsigned char byte = (unsigned char)number;
    int before = errno;
    ssize_t ignored = write((int)signal_pipe, &byte, 1); /* full: enough signals are waiting */

    (void)ignored;
    errno = before;
}

/* *fd becomes what evaluation_loop.h reads. */
static int open_signals(int *fd, struct error *e)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, hangup;
    int fds[2];

    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        return error_system(e, "cannot make a pipe for signals");
    *fd = fds[0];
    signal_pipe = fds[1];
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    /* On a terminal SIGHUP means that the terminal is gone; under nohup it must do nothing. */
    if (!isatty(STDERR_FILENO) && sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* makes a write past the file size limit fail, like a full disk */
    return OK;
}

static int main_finish(const struct evaluation_watch_facts *w, struct log *log, int rc)
{
    const struct watch_log says = { log, w->settings->name };
    const struct ledger_summary *s = w->record.summary;
    const struct ending_rules *ending = &w->settings->ending;
    const int died = ending->pid && w->ended;
    char skipped[40] = "", untried[40] = "", wanted[PATTERN_TEXT_MAX + 32];

    if (w->skipped)
        snprintf(skipped, sizeof skipped, ", %lld skipped", (long long)w->skipped);
    if (w->record.untried)
        snprintf(untried, sizeof untried, ", %zu untried", w->record.untried);
    watch_log_say(&says, "%lld evaluated%s; in all %zu done, %zu failed, %zu gone%s", (long long)w->evaluations,
                  skipped, s->done, w->record.failed, w->record.gone, untried);
    if (w->record.failed && w->record.same_failures < SAME_FAILURES_MOST)
        watch_log_say(&says, "--retry-failed evaluates the failed ones again");
    if (s->has_best)
        watch_log_say(&says, "best %s %.3f (%s)", s->rule.metric, s->best_value, s->best.name);
    else if (s->done)
        watch_log_say(&says, "no best checkpoint yet");
    checkpoint_source_describe(&w->settings->watcher.source, wanted, sizeof wanted);
    if (!ledger_lines(s) && (ending->once || died))
        watch_log_say(&says, "%s: no checkpoint found; looked for %s", w->settings->checkpoint_directory, wanted);
    if (!ledger_lines(s) && ((ending->once && w->settings->watcher.source.has_pattern) || died))
        return EXIT_NO;
    return rc == OK && !w->record.failed && !w->record.gone && !w->record.untried ? EXIT_DONE : EXIT_NO;
}

static int open_runner(const struct evaluator_options *c, const struct log *log, struct runner *out, struct error *e)
{
    struct log own = *log; /* another thread may write lines meanwhile */
    struct builtin_runner_options options = c->builtin;
    struct scorer scorer;
    int rc;

    if (c->command.command)
        return command_runner_new(out, &c->command, e);
    options.log = &own;
    rc = builtin_runner_new(&scorer, &options, e);
    return rc == OK ? thread_runner_new(out, &scorer, e) : rc;
}

/* Redirects standard error to the file, so that messages of libraries go there, too. */
static int open_log_file(const struct evaluator_options *c, struct log *log, struct error *e)
{
    int fd, rc;

    if (!c->log_file)
        return OK;
    if ((rc = file_open_named(c->log_file, O_WRONLY | O_CREAT | O_APPEND, &fd, e)) != OK)
        return rc;
    dup2(fd, STDERR_FILENO);
    close(fd);
    log_set_json(log, log->json); /* a terminal no more */
    return OK;
}

struct log_place {
    const struct evaluator_options *command;
    struct log *log;
};

/* After SIGHUP: the file was moved away, as logrotate does. */
static void reopen_log(void *context)
{
    const struct log_place *place = context;
    struct error e = { 0 };

    if (open_log_file(place->command, place->log, &e) != OK)
        log_event(place->log, "error", NULL, "%s; logging goes on in the old file", e.message);
}

/* The status is the worst of all watches. */
static int finish_all(const struct evaluation_loop_options *l, int rc, const struct error *e)
{
    struct evaluation_set_past past = l->set ? evaluation_set_past(l->set) : (struct evaluation_set_past){ 0, 0, 0 };
    size_t count = l->watch_count;
    struct evaluation_watch **watches = l->set ? evaluation_set_watches(l->set, &count) : l->watches;
    int status = past.failed || past.gone ? EXIT_NO : EXIT_DONE;

    if (*e->message)
        log_event(l->log, "error", NULL, "%s", e->message);
    if (rc < 0)
        return EXIT_USAGE;
    for (size_t i = 0; i < count; i++) {
        const struct evaluation_watch_facts w = evaluation_watch_facts(watches[i]);
        int one = main_finish(&w, l->log, rc);

        status = one > status ? one : status;
    }
    return status;
}

/* What the command line says of each directory, and what all of them share. */
static int open_watches(const struct evaluator_options *c, struct evaluation_log_files *files,
                        struct evaluation_loop_options *l, struct error *e)
{
    struct evaluation_set_options options = c->set;
    struct evaluation_watch_settings *s = &options.settings;
    const size_t limit = s->pin ? PINNED_MAX : queue_limit(), named = options.pairs.count;
    int rc = checkpoint_source_init(&s->watcher.source, &s->source, e);

    s->hooks = l->hooks;
    s->lookout = l->lookout;
    s->open_files = files;
    s->queue_limit = evaluator_options_several(c) ? limit / (named > 8 ? named : 8) + 4 : limit;
    if (rc == OK && evaluator_options_several(c))
        return evaluation_set_open(&l->set, &options, l->log, e);
    return rc == OK ? evaluation_watch_open(l->watches, s, l->log, e) : rc;
}

struct loading {
    const struct evaluator_options *command;
    const struct log *log;
    struct runner *runner;
    struct error why;
    int rc, done_fd;
};

static void *load(void *context)
{
    const uint64_t one = 1;
    struct loading *l = context;
    ssize_t ignored;

    l->rc = open_runner(l->command, l->log, l->runner, &l->why);
    ignored = write(l->done_fd, &one, sizeof one); /* its counter was 0, so this does not block */
    (void)ignored;
    return NULL;
}

/* The data and the net may take seconds: what comes to light meanwhile is said. */
static int load_and_look(struct evaluation_loop *loop, const struct evaluator_options *c, const struct log *log,
                         struct runner *out, struct error *e)
{
    struct loading l = { .command = c, .log = log, .runner = out, .done_fd = eventfd(0, EFD_CLOEXEC) };
    pthread_t thread;
    int rc;

    if (l.done_fd < 0)
        return error_system(e, "cannot make a descriptor to wait on");
    if (pthread_create(&thread, NULL, load, &l) != 0) {
        close(l.done_fd);
        return open_runner(c, log, out, e);
    }
    rc = evaluation_loop_look_until(loop, l.done_fd, e);
    pthread_join(thread, NULL);
    close(l.done_fd);
    return l.rc != OK ? error_copy(e, &l.why) : rc;
}

/* First lock, ledger and watch, then data and network: nothing that comes and goes meanwhile is missed. */
static int work(const struct evaluator_options *c, struct log *log)
{
    struct evaluation_log_files open_files = { .limit = EVENT_FILES_OPEN };
    struct evaluation_watch *watch = NULL;
    struct runner runner = { 0 };
    struct log_place place = { c, log };
    struct evaluation_loop_options l = { .log = log,
                                         .watches = &watch,
                                         .watch_count = 1,
                                         .runner = &runner,
                                         .prom = c->prom,
                                         .hung_up = reopen_log,
                                         .context = &place };
    struct evaluation_loop *loop = NULL;
    struct error e = { 0 };
    int status = EXIT_USAGE, rc;

    if ((rc = open_signals(&l.signal_fd, &e)) == OK && (rc = hooks_new(&l.hooks, &c->hooks, log, &e)) == OK &&
        (rc = lookout_start(&l.lookout, &e)) == OK)
        rc = open_watches(c, &open_files, &l, &e);
    if (rc == OK && (rc = evaluation_loop_new(&loop, &l, &e)) == OK &&
        (rc = load_and_look(loop, c, log, &runner, &e)) == OK) {
        malloc_trim(0);
        rc = evaluation_loop_run(loop, &e);
        status = finish_all(&l, rc, &e);
    } else {
        log_event(log, "error", NULL, "%s", e.message);
    }
    if (runner.free)
        runner.free(runner.context);
    evaluation_loop_free(loop);
    evaluation_set_close(l.set);
    evaluation_watch_close(watch);
    lookout_stop(l.lookout);
    hooks_free(l.hooks);
    return status;
}

#define ROW(function, name, help) { name, help, command_##function },
static const struct subcommand commands[] = { EVALUATOR_COMMANDS(ROW) };
enum { COMMANDS = sizeof commands / sizeof *commands };

int main(int argc, char **argv)
{
    struct evaluator_options o;
    struct error e = { 0 };
    struct log log;
    int status, rc;

    if (evaluator_options_command(commands, COMMANDS, argc, argv, &status))
        return status;
    log_init(&log, "evaluator", STDERR_FILENO);
    rc = evaluator_options_parse(&o, commands, COMMANDS, argc, argv, &e);
    log_set_json(&log, o.log_json);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc < 0 || (rc = open_log_file(&o, &log, &e)) != OK) {
        log_event(&log, "error", NULL, "%s", e.message);
        evaluator_options_release(&o);
        return EXIT_USAGE;
    }
    if (o.told_text.length)
        log_line(&log, "using%s, as %s/training.json says", buffer_text(&o.told_text),
                 o.set.settings.checkpoint_directory);
    status = work(&o, &log);
    evaluator_options_release(&o);
    return status;
}
