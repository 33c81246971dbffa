#include "evaluator/evaluation_loop.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "evaluator/evaluation_record.h"
#include "evaluator/watch/lookout.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How many results per slot may wait for an earlier evaluation to finish. */
enum { FLIGHTS_PER_SLOT = 4 };

/* what a slot of the runner is evaluating; both NULL: nothing */
struct evaluation_slot {
    struct evaluation_watch *watch;
    struct evaluation_flight *flight;
};

struct evaluation_loop {
    struct evaluation_loop_options options;
    struct evaluation_watch **watches;
    size_t watch_count;
    int signals;                        /* so many SIGTERM and SIGINT came */
    int hangup;                         /* 1: a SIGHUP has not been handled yet */
    size_t prom_recorded, prom_pending; /* as last written */
    double prom_next;                   /* monotonic: no earlier if only the pending count has changed */
    int prom_failed;
    struct evaluation_slot *slots; /* one per slot of the runner, while it runs */
};

static size_t busy(const struct evaluation_loop *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->options.runner->slots; i++)
        n += l->slots[i].flight != NULL;
    return n;
}

static void read_signals(struct evaluation_loop *l)
{
    unsigned char number;

    while (read(l->options.signal_fd, &number, 1) == 1) {
        if (number == SIGHUP) {
            l->hangup = 1;
            continue;
        }
        l->signals++;
        if (l->signals == 1)
            log_line(l->options.log, "%s: ending%s", number == SIGINT ? "SIGINT" : "SIGTERM",
                     busy(l) ? " after this evaluation; a second signal ends it at once" : "");
    }
}

/* Asks the runner about its busy slots. */
static void collect(struct evaluation_loop *l)
{
    for (size_t i = 0; i < l->options.runner->slots; i++) {
        struct evaluation_slot *slot = &l->slots[i];
        struct runner_progress progress = { 0, WEIGHTS_UNKNOWN, NULL };
        struct evaluation evaluation = { .examples = -1, .correct = -1 };
        struct error why = { 0 };
        enum runner_state state;

        if (!slot->flight)
            continue;
        state = l->options.runner->look(l->options.runner->context, i, &progress, &evaluation, &why);
        evaluation_watch_progress(slot->watch, slot->flight, &progress);
        if (state == RUNNER_BUSY)
            continue;
        evaluation_watch_landed(slot->watch, slot->flight, l->options.runner->by_path, state, &evaluation, &why);
        *slot = (struct evaluation_slot){ NULL, NULL };
    }
}

static int tick(struct evaluation_loop *l, struct error *e)
{
    for (size_t i = 0; i < l->watch_count; i++) {
        int rc = evaluation_watch_tick(l->watches[i], l->signals > 0, e);

        if (rc != OK)
            return rc == EVALUATION_STOPPED    ? EVALUATION_LOOP_STOPPED
                   : rc == EVALUATION_GIVEN_UP ? EVALUATION_LOOP_FAILED
                                               : rc;
    }
    return OK;
}

static struct evaluation_watch *next_watch(const struct evaluation_loop *l)
{
    size_t window = l->options.runner->slots > 1 ? l->options.runner->slots * FLIGHTS_PER_SLOT : 1;
    struct evaluation_watch *next = NULL;
    double earliest = INFINITY;

    for (size_t i = 0; i < l->watch_count; i++) {
        const double start = evaluation_watch_facts(l->watches[i]).last_start;

        if (!evaluation_watch_ready(l->watches[i], window) || start >= earliest)
            continue;
        next = l->watches[i];
        earliest = start;
    }
    return next;
}

static void loop_start(struct evaluation_loop *l, size_t slot, struct evaluation_watch *w, struct evaluation_flight *f)
{
    const struct checkpoint_identity *checkpoint = &evaluation_flight_item(f)->checkpoint;
    const int by_path = l->options.runner->by_path;
    struct error why = { 0 };
    int rc = OK;

    if (checkpoint->step < 0)
        rc = error_set(&why, ERR_ARG,
                       "%s has no step: neither its name nor a tensor global_step gives one of 0 or more",
                       checkpoint->name);
    if (rc == OK && (rc = evaluation_flight_reopen(f, &why)) == OK && !evaluation_watch_start(w, f, by_path))
        return;
    if (rc == OK)
        rc = l->options.runner->start(l->options.runner->context, slot, evaluation_flight_job(f), &why);
    if (rc != OK) {
        evaluation_watch_landed(w, f, by_path, RUNNER_FAILED, NULL, &why);
        return;
    }
    l->slots[slot] = (struct evaluation_slot){ w, f };
}

/* Starts evaluations in idle slots. 1: something was started or skipped, so look again before sleeping. */
static int start_some(struct evaluation_loop *l, struct error *e)
{
    struct evaluation_watch *w;
    int some = 0;

    for (size_t i = 0; i < l->options.runner->slots; i++) {
        while (!l->slots[i].flight && (w = next_watch(l))) {
            struct evaluation_flight *f;
            int rc = evaluation_watch_take(w, &f, e);

            if (rc < 0)
                return rc;
            some = 1;
            if (rc)
                loop_start(l, i, w, f);
        }
    }
    return some;
}

static void append_count(struct buffer *b, size_t n, const char *what)
{
    if (n)
        buffer_format(b, ", %zu %s", n, what);
}

/* "12 done, 3 queued, newest 4.2 s old, best precision 0.912 (model.ckpt-700)"; without counts that are 0. */
static void say_status_of(struct evaluation_loop *l, const struct evaluation_watch_facts *w)
{
    const struct ledger_summary *s = w->record.summary;
    struct buffer b = BUFFER_EMPTY;
    char age[HUMAN_TEXT_MAX];

    append_count(&b, w->record.failed, "failed");
    append_count(&b, w->record.gone, "gone");
    append_count(&b, w->intake.queued + w->in_flight, "queued");
    if (w->settings->pin && w->intake.queued)
        buffer_format(&b, " (%.1f MB pinned)", (double)w->intake.pinned_bytes / 1e6);
    append_count(&b, w->intake.undecided, "not ready");
    if (w->intake.newest_written > 0)
        buffer_format(&b, ", newest %s old", human_duration(clock_wall() - w->intake.newest_written, age));
    if (s->has_best)
        buffer_format(&b, ", best %s %.3f (%s)", s->rule.metric, s->best_value, s->best.name);
    log_progress(l->options.log, "%s: %zu done%s",
                 w->in_flight       ? "evaluating"
                 : w->intake.queued ? "pausing"
                                    : "waiting",
                 s->done, buffer_text(&b));
    buffer_release(&b);
}

static void say_status(struct evaluation_loop *l)
{
    size_t done = 0, queued = 0, failed = 0, gone = 0;

    for (size_t i = 0; i < l->watch_count; i++) {
        const struct evaluation_watch_facts w = evaluation_watch_facts(l->watches[i]);

        if (l->watch_count == 1) {
            say_status_of(l, &w);
            return;
        }
        done += w.record.summary->done;
        failed += w.record.failed;
        gone += w.record.gone;
        queued += w.intake.queued + w.in_flight;
    }
    log_progress(l->options.log, "watching %zu directories: %zu done, %zu queued, %zu failed, %zu gone", l->watch_count,
                 done, queued, failed, gone);
}

/* Waits until a directory has news or is due, a signal came, `descriptor` is readable, or `wait` seconds passed. */
static int sleep_on(struct evaluation_loop *l, int descriptor, double wait, struct error *e)
{
    struct pollfd fds[] = { { .fd = l->options.signal_fd, .events = POLLIN },
                            { .fd = descriptor, .events = POLLIN },
                            { .fd = hooks_descriptor(l->options.hooks), .events = POLLIN },
                            { .fd = lookout_descriptor(l->options.lookout), .events = POLLIN } };

    if (l->options.set && !l->signals)
        wait = fmin(wait, evaluation_set_due(l->options.set));
    if (poll(fds, sizeof fds / sizeof *fds, wait > 0 ? (int)ceil(fmin(wait, 1e6) * 1000) : 0) < 0 && errno != EINTR)
        return error_system(e, "cannot wait for events");
    lookout_heard(l->options.lookout);
    return OK;
}

static int wait_for_news(struct evaluation_loop *l, struct error *e)
{
    double wait = l->options.runner->due ? l->options.runner->due(l->options.runner->context) : INFINITY;

    if (l->options.log->terminal && busy(l))
        wait = fmin(wait, 0.1); /* the progress changes */
    wait = fmin(wait, hooks_due(l->options.hooks));
    for (size_t i = 0; i < l->watch_count; i++)
        wait = fmin(wait, evaluation_watch_due(l->watches[i]));
    return sleep_on(l, l->options.runner->descriptor, wait, e);
}

static int all_ended(const struct evaluation_loop *l)
{
    for (size_t i = 0; i < l->watch_count; i++)
        if (!evaluation_watch_facts(l->watches[i]).ended)
            return 0;
    return !l->options.set || !evaluation_set_open_ended(l->options.set);
}

static void take_watches(struct evaluation_loop *l)
{
    if (l->options.set)
        l->watches = evaluation_set_watches(l->options.set, &l->watch_count);
}

int evaluation_loop_new(struct evaluation_loop **out, const struct evaluation_loop_options *options, struct error *e)
{
    struct evaluation_loop *l = calloc(1, sizeof *l);

    if (!(*out = l))
        return error_memory(e, NULL, "to serve directories");
    l->options = *options;
    l->watches = options->watches;
    l->watch_count = options->watch_count;
    take_watches(l);
    return OK;
}

void evaluation_loop_free(struct evaluation_loop *l)
{
    free(l);
}

/* Adds and drops directories; and handles SIGHUP. */
static int refresh(struct evaluation_loop *l, struct error *e)
{
    int rc = OK;

    if (l->options.set && (l->hangup || evaluation_set_due(l->options.set) <= 0)) {
        rc = evaluation_set_refresh(l->options.set, l->hangup, e);
        take_watches(l);
    }
    if (rc != OK)
        return rc;
    if (l->hangup) {
        l->hangup = 0;
        for (size_t i = 0; i < l->watch_count; i++)
            evaluation_intake_look_soon(evaluation_watch_intake(l->watches[i]));
        if (l->options.hung_up)
            l->options.hung_up(l->options.context);
        log_line(l->options.log, "SIGHUP: looking at everything again");
    }
    return rc;
}

static const char *run_name(const struct evaluation_watch_settings *s, char *out, size_t size)
{
    char path[PATH_MAX];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", s->eval_directory);

    while (n > 1 && n < sizeof path && path[n - 1] == '/')
        path[--n] = '\0';
    snprintf(out, size, "%s%s%s", s->name ? s->name : "", s->name ? "/" : "", file_base_name(path));
    return out;
}

/* A failure is logged once: readers see the age of the file. */
static void write_prom(struct evaluation_loop *l)
{
    struct evaluation_prom_row *rows = calloc(l->watch_count + 1, sizeof *rows);
    char(*names)[PATH_MAX + NAME_MAX] = calloc(l->watch_count + 1, sizeof *names);
    struct error why = { 0 };
    int rc;

    for (size_t i = 0; rows && names && i < l->watch_count; i++) {
        const struct evaluation_watch_facts w = evaluation_watch_facts(l->watches[i]);

        rows[i] = (struct evaluation_prom_row){ run_name(w.settings, names[i], sizeof names[i]), w.record.series,
                                                w.record.summary, w.intake.queued + w.in_flight, w.record.last_step };
    }
    rc = rows && names ? evaluation_prom_write(l->options.prom, rows, l->watch_count, &why)
                       : error_memory(&why, l->options.prom, "for it");
    if (rc != OK && !l->prom_failed)
        log_event(l->options.log, "error", NULL, "%s; trying again after each evaluation", why.message);
    l->prom_failed = rc != OK;
    free(rows);
    free(names);
}

static void prom_if_due(struct evaluation_loop *l)
{
    size_t recorded = 1, pending = 0; /* 1: write it once even without a score */

    if (!l->options.prom)
        return;
    for (size_t i = 0; i < l->watch_count; i++) {
        const struct evaluation_watch_facts w = evaluation_watch_facts(l->watches[i]);

        recorded += ledger_lines(w.record.summary);
        pending += w.intake.queued + w.in_flight;
    }
    if (recorded == l->prom_recorded && (pending == l->prom_pending || clock_monotonic() < l->prom_next))
        return;
    l->prom_recorded = recorded;
    l->prom_pending = pending;
    l->prom_next = clock_monotonic() + 1;
    write_prom(l);
}

static void report(const struct evaluation_loop *l, int now)
{
    for (size_t i = 0; i < l->watch_count; i++)
        evaluation_watch_report(l->watches[i], now);
}

static int run(struct evaluation_loop *l, struct error *e)
{
    for (;;) {
        int rc;

        read_signals(l);
        collect(l);
        hooks_look(l->options.hooks);
        if (!l->signals && (rc = refresh(l, e)) != OK)
            return rc;
        if ((rc = tick(l, e)) != OK)
            return rc;
        prom_if_due(l);
        report(l, 0);
        if (l->signals > 1 && busy(l))
            return EVALUATION_LOOP_STOPPED;
        if (l->signals && !busy(l))
            return EVALUATION_LOOP_DONE; /* tick() has recorded the landed flights */
        if (!l->signals) {
            if ((rc = start_some(l, e)) < 0)
                return rc;
            if (rc)
                continue;
            if (all_ended(l))
                return EVALUATION_LOOP_DONE;
        }
        say_status(l);
        if ((rc = wait_for_news(l, e)) != OK)
            return rc;
    }
}

/* Ends the running evaluations without recording them, so a later start repeats them. */
static void stop_all(struct evaluation_loop *l)
{
    for (size_t i = 0; i < l->options.runner->slots; i++)
        if (l->slots[i].flight)
            l->options.runner->stop(l->options.runner->context, i);
    while (busy(l)) {
        struct pollfd fd = { .fd = l->options.runner->descriptor, .events = POLLIN };
        double due = l->options.runner->due ? l->options.runner->due(l->options.runner->context) : INFINITY;

        poll(&fd, 1, (int)ceil(fmin(due, 1) * 1000));
        for (size_t i = 0; i < l->options.runner->slots; i++) {
            struct runner_progress progress;
            struct evaluation evaluation = { .examples = -1, .correct = -1 };

            if (!l->slots[i].flight)
                continue;
            if (l->options.runner->look(l->options.runner->context, i, &progress, &evaluation, NULL) == RUNNER_BUSY)
                continue;
            evaluation_release(&evaluation);
            evaluation_watch_landed(l->slots[i].watch, l->slots[i].flight, 0, RUNNER_STOPPED, NULL, NULL);
            l->slots[i] = (struct evaluation_slot){ NULL, NULL };
        }
    }
}

/* Why the watches end whose work is not done. */
static void post_ends(struct evaluation_loop *l, int rc, const struct error *e)
{
    const char *reason = rc != EVALUATION_LOOP_DONE && e && *e->message ? e->message : "a signal ended the evaluator";

    for (size_t i = 0; i < l->watch_count; i++)
        evaluation_watch_post_end(l->watches[i], reason);
}

/* Waits for running and waiting commands, until they are done or a further signal arrives. */
static void finish_hooks(struct evaluation_loop *l)
{
    const int before = l->signals;

    while (hooks_pending(l->options.hooks)) {
        struct pollfd fds[2] = { { .fd = l->options.signal_fd, .events = POLLIN },
                                 { .fd = hooks_descriptor(l->options.hooks), .events = POLLIN } };

        hooks_look(l->options.hooks);
        if (!hooks_pending(l->options.hooks))
            return;
        poll(fds, 2, (int)ceil(fmin(hooks_due(l->options.hooks), 60) * 1000));
        read_signals(l);
        if (l->signals > before)
            hooks_stop(l->options.hooks);
    }
}

int evaluation_loop_look_until(struct evaluation_loop *l, int descriptor, struct error *e)
{
    struct pollfd ready = { .fd = descriptor, .events = POLLIN };
    int rc = OK;

    while (rc == OK && poll(&ready, 1, 0) <= 0) {
        read_signals(l);
        if (!l->signals)
            rc = refresh(l, e);
        for (size_t i = 0; i < l->watch_count && rc == OK; i++)
            rc = evaluation_watch_hear(l->watches[i], e);
        report(l, 0);
        if (rc == OK)
            rc = sleep_on(l, descriptor, INFINITY, e);
    }
    return rc;
}

int evaluation_loop_run(struct evaluation_loop *l, struct error *e)
{
    int rc;

    l->slots = calloc(l->options.runner->slots, sizeof *l->slots);
    if (l->slots) {
        rc = run(l, e);
        log_progress_end(l->options.log);
        if (l->signals > 1)
            hooks_stop(l->options.hooks);
        stop_all(l);
        report(l, 1);
        if (l->signals < 2)
            post_ends(l, rc, e);
        finish_hooks(l);
    } else {
        rc = error_memory(e, NULL, "for %zu evaluations at a time", l->options.runner->slots);
    }
    free(l->slots);
    l->slots = NULL;
    return rc;
}
