/* eventlog watch: a live page of runs and curves in the terminal. */
#include "base/clock.h"
#include "base/process.h"
#include "base/program/terminal.h"
#include "eventlog/format/log_name.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/watch/follow.h"
#include "eventlog/tool/watch/watch_page.h"
#include "eventlog/tool/watch/watch_screen.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Looking and drawing take at most 1/20 of the time, however large the log is. */
enum { BUSY_PART = 20, SAID_MOST = 1 << 16 };

struct watch {
    struct scan scan;
    struct follow follow;
    struct watch_model model;
    struct watch_page page;
    struct watch_screen *screen;
    const char *axis, *color;
    double interval;
    int ascii;
    int said[2];            /* a pipe: what is logged while the page is up */
    struct buffer all_said; /* printed when the page is closed */
    struct buffer title;
    sigset_t signals, before; /* the signals that end it or wake it; the mask before */
    int signal_fd, signal;    /* signal: the one that ended it, 0: none */
};

/* ---- points ---------------------------------------------------------------------------------------------------- */

static int tag_wanted(void *context, const struct scalar_series *s, const struct eventlog_point *point)
{
    struct watch *w = context;

    (void)point;
    return scan_tag_wanted(&w->scan, s->tag);
}

static int new_run(void *context, size_t run, int first, struct error *e)
{
    struct watch *w = context;
    int rc = watch_model_add_run(&w->model, w->follow.log.runs[run].name, e);

    (void)first;
    if (rc == OK && w->scan.tags.patterns.count) {
        w->model.runs[run].scalars.wanted = tag_wanted;
        w->model.runs[run].scalars.context = w;
    }
    return rc;
}

static int watch_take(void *context, size_t run, const struct event *event, struct error *e)
{
    struct watch *w = context;

    return scalar_run_event(&w->model.runs[run].scalars, event, e);
}

/* The whole run is read again: which of its points came from the replaced file is unknown. */
static void restart(void *context, size_t run)
{
    struct watch *w = context;

    watch_model_forget(&w->model, run);
}

/* 1: whoever wrote the files of a run was on this host, and has ended. */
static int has_ended(const struct log_follow_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        struct process writer = { .start = -1 };
        char host[LOG_NAME_MAX];

        writer.pid = log_name_writer(run->files[i].path, host);
        if (!writer.pid || strlen(host) >= sizeof writer.host)
            return 0;
        strcpy(writer.host, host);
        if (process_judge(&writer) != PROCESS_GONE)
            return 0;
    }
    return run->count > 0;
}

static int look(struct watch *w, int first, struct error *e)
{
    const double now = clock_wall();
    int rc = follow_look(&w->follow, first, e);

    if (rc == OK)
        rc = follow_read(&w->follow, e);
    for (size_t i = 0; i < w->model.run_count && rc == OK; i++) {
        struct watch_run *run = &w->model.runs[i];

        run->gone = !w->follow.log.runs[i].there;
        run->ended = 0;
        run->ended = watch_status_of(run, now, w->model.stalled_after).state == WATCH_STALLED &&
                     has_ended(&w->follow.log.runs[i]);
    }
    return rc == OK ? watch_model_update(&w->model, e) : rc;
}

/* ---- what is logged -------------------------------------------------------------------------------------------- */

/* The last line that was logged is shown at the foot of the page, without the program's name. */
static void hear_log(struct watch *w)
{
    char text[4096];
    ssize_t n;

    while ((n = read(w->said[0], text, sizeof text - 1)) > 0) {
        const char *line, *end;

        text[n] = '\0';
        if (w->all_said.length < SAID_MOST)
            buffer_append(&w->all_said, text, (size_t)n);
        end = text[n - 1] == '\n' ? text + n - 1 : text + n;
        for (line = end; line > text && line[-1] != '\n';)
            line--;
        if (!strncmp(line, w->scan.log.program, strlen(w->scan.log.program)))
            line += strlen(w->scan.log.program) + strlen(": ");
        snprintf(w->model.message, sizeof w->model.message, "%.*s", line < end ? (int)(end - line) : 0, line);
    }
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

static int show(struct watch *w, struct error *e)
{
    int columns, rows, rc;

    watch_screen_size(w->screen, &columns, &rows);
    watch_model_resize(&w->model, columns, rows);
    if ((rc = watch_page_draw(&w->page, &w->model, clock_wall(), e)) == OK)
        watch_screen_show(w->screen, &w->page.grid);
    return rc;
}

/* 1 to go on, 0 when the user wants to end or the terminal is gone. */
static int hear_input(struct watch *w)
{
    struct watch_input input;
    int rc, on = 1;

    while (on && (rc = watch_screen_next(w->screen, &input)) != 0) {
        if (rc < 0)
            return 0;
        if (input.kind == WATCH_INPUT_KEY)
            on = watch_model_key(&w->model, input.key);
        else if (input.kind == WATCH_INPUT_CLICK)
            watch_model_click(&w->model, input.column, input.row);
        else if (input.kind == WATCH_INPUT_WHEEL)
            watch_model_wheel(&w->model, input.column, input.row, input.direction);
    }
    return on;
}

static int hear_signal(struct watch *w)
{
    struct signalfd_siginfo info;

    while (read(w->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGWINCH)
            w->signal = (int)info.ssi_signo;
    return !w->signal;
}

/* Sleeps until there is input or a signal, or until that time; 1 to go on, 0 to end. */
static int wait_until(struct watch *w, double time)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = w->signal_fd, .events = POLLIN } };
    double left = time - clock_monotonic();

    poll(fds, sizeof fds / sizeof *fds, left > 0 ? (int)ceil(left * 1000) : 0);
    return hear_signal(w) && hear_input(w);
}

static int live(struct watch *w, struct error *e)
{
    double next = 0;
    int rc;

    do {
        double began = clock_monotonic(), busy;
        int looked = began >= next;

        if (looked && (rc = look(w, 0, e)) != OK)
            return rc;
        hear_log(w);
        if ((rc = show(w, e)) != OK)
            return rc;
        busy = clock_monotonic() - began;
        if (looked)
            next = began + fmax(w->interval, (double)BUSY_PART * busy);
    } while (wait_until(w, next));
    return OK;
}

/* ---- begin and end --------------------------------------------------------------------------------------------- */

/* Signals arrive through a descriptor from before the page is shown until the terminal is restored. */
static int open_page(struct watch *w, struct error *e)
{
    int rc;

    sigemptyset(&w->signals);
    sigaddset(&w->signals, SIGINT);
    sigaddset(&w->signals, SIGTERM);
    sigaddset(&w->signals, SIGHUP);
    sigaddset(&w->signals, SIGQUIT);
    sigaddset(&w->signals, SIGWINCH);
    sigprocmask(SIG_BLOCK, &w->signals, &w->before);
    w->signal_fd = signalfd(-1, &w->signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (w->signal_fd < 0 || pipe2(w->said, O_NONBLOCK | O_CLOEXEC) < 0)
        return error_system(e, "cannot wait for signals");
    if ((rc = watch_screen_open(&w->screen, terminal_coloured(STDOUT_FILENO, w->color), e)) != OK)
        return rc;
    w->scan.log.fd = w->said[1];
    w->scan.log.terminal = 0;
    w->page.ascii = w->ascii || !terminal_utf8();
    w->page.colour = watch_screen_coloured(w->screen);
    return OK;
}

static void close_page(struct watch *w)
{
    watch_screen_close(w->screen);
    w->scan.log.fd = STDERR_FILENO;
    if (w->all_said.length && write(STDERR_FILENO, w->all_said.data, w->all_said.length) < 0)
        w->scan.failed = 1;
    for (int i = 0; i < 2; i++)
        if (w->said[i] >= 0)
            close(w->said[i]);
    if (w->signal_fd >= 0)
        close(w->signal_fd);
    sigprocmask(SIG_SETMASK, &w->before, NULL);
}

static int watch(struct watch *w, struct error *e)
{
    int rc = open_page(w, e);

    if (rc == OK && (rc = look(w, 1, e)) == OK)
        rc = live(w, e);
    if (w->screen)
        hear_log(w);
    close_page(w);
    if (w->signal) { /* deliver the signal now, so that the parent process sees which it was */
        signal(w->signal, SIG_DFL);
        raise(w->signal);
    }
    return rc;
}

int command_watch(int argc, char **argv)
{
    struct watch w = { .axis = "step", .color = "auto", .interval = 1, .said = { -1, -1 }, .signal_fd = -1 };
    struct option table[] = {
        SCAN_RUN_OPTION(w.scan),
        SCAN_TAG_OPTION(w.scan),
        { OPTION_CHOICE, 0, "x", &w.axis,
          .help = "Draw curves over the step, the time since the run's first point, or the time of day (default step)",
          .choices = "step|relative|wall" },
        { OPTION_DOUBLE, 0, "smoothing", &w.model.smoothing, "W",
          .help = "Draw a moving average that gives the past the weight W, 0 to 0.999 (default 0: none)", .minimum = 0,
          .maximum = 0.999 },
        { OPTION_FLAG, 0, "log-y", &w.model.log_y, .help = "Draw values on a logarithmic scale" },
        { OPTION_DOUBLE, 0, "stalled-after", &w.model.stalled_after, "SECONDS",
          .help = "Mark a run as stalled after SECONDS without a new point, or as ended if the process that wrote it "
                  "was on this host and is gone (default: ten times the interval between its last points, at least 60)",
          .minimum = 0, .maximum = 1e9 },
        { OPTION_DOUBLE, 0, "interval", &w.interval, "SECONDS",
          .help =
              "Look for new points every SECONDS (default 1); less often if that would take more than 1/20 of the time",
          .minimum = 0.01, .maximum = 3600 },
        { OPTION_FLAG, 0, "ascii", &w.ascii, .help = "Draw without braille (default where the locale is not UTF-8)" },
        { OPTION_CHOICE, 0, "color", &w.color, .help = "Use colours (default auto: unless NO_COLOR is set)",
          .choices = "auto|always|never" },
    };
    const struct options options = {
        .program = "eventlog watch",
        .usage = "[OPTION...] PATH...",
        .summary =
            "Show a live page in the terminal: runs with their newest step, age and state, the newest values, and "
            "charts of the chosen tags. Runs that are stalled, whose newest value is NaN or infinite, or whose files "
            "are gone are marked; runs that appear are added; a PATH may not exist yet. Press ? for the keys, q to "
            "quit. Exit status: 0 done; 1 no points, or damage; 2 usage or I/O, or not a terminal.",
        .examples = "  eventlog watch runs\n  eventlog watch runs --tag 'loss*' --x relative --smoothing 0.6\n"
                    "  ssh -t gpu1 eventlog watch /data/runs\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&w.scan, &options, argc, argv, &count, &e);

    if (rc != OK)
        return scan_leave(&w.scan, rc, &e);
    buffer_format(&w.title, count > 1 ? "%s %s and %d more" : "%s %s", options.program, argv[1], count - 1);
    w.model.title = buffer_text(&w.title);
    picture_axis_next(&w.axis, &w.model.axis);
    w.follow = (struct follow){ .scan = &w.scan,
                                .paths = argv + 1,
                                .path_count = (size_t)count,
                                .waits = 1,
                                .sink = { &w, new_run, watch_take, NULL, restart },
                                .watch = LOG_WATCH_NONE };
    rc = watch(&w, &e);
    if (rc == OK && !w.model.run_count && !w.scan.runs.names && !w.scan.empty)
        scan_tell_empty(&w.scan, argv[1], "");
    status = rc == OK ? scan_status(&w.scan, w.model.tags.count > 0) : scan_fail(&w.scan, &e);
    watch_model_release(&w.model);
    watch_page_release(&w.page);
    follow_release(&w.follow);
    buffer_release(&w.all_said);
    buffer_release(&w.title);
    scan_close(&w.scan);
    return status;
}
