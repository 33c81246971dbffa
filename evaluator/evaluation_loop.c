#include "evaluator/evaluation_loop.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "evaluator/watch_log.h"
#include "evaluator/watch_report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How many results may wait for an earlier one that is still being evaluated, for each slot. */
enum { FLIGHTS_PER_SLOT = 4 };

static size_t busy(const struct evaluation_loop *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->runner->slots; i++)
        n += l->slots[i].flight != NULL;
    return n;
}

static void read_signals(struct evaluation_loop *l)
{
    unsigned char number;

    while (read(l->signal_fd, &number, 1) == 1) {
        if (number == SIGHUP) {
            l->hangup = 1;
            continue;
        }
        l->signals++;
        if (l->signals == 1)
            log_line(l->log, "%s: ending%s", number == SIGINT ? "SIGINT" : "SIGTERM",
                     busy(l) ? " after this evaluation; a second signal ends it at once" : "");
    }
}

/* What the runner has to say of its busy slots. */
static void collect(struct evaluation_loop *l)
{
    for (size_t i = 0; i < l->runner->slots; i++) {
        struct evaluation_slot *slot = &l->slots[i];
        struct runner_progress progress = { 0, WEIGHTS_UNKNOWN, NULL };
        struct evaluation evaluation = { .examples = -1, .correct = -1 };
        struct error why = { 0 };
        enum runner_state state;

        if (!slot->flight)
            continue;
        state = l->runner->look(l->runner->context, i, &progress, &evaluation, &why);
        evaluation_watch_progress(slot->watch, slot->flight, &progress);
        if (state == RUNNER_BUSY)
            continue;
        evaluation_watch_landed(slot->watch, slot->flight, state, &evaluation, &why);
        *slot = (struct evaluation_slot){ NULL, NULL };
    }
}

static int tick(struct evaluation_loop *l, struct error *e)
{
    for (size_t i = 0; i < l->watch_count; i++) {
        struct evaluation_watch *w = l->watches[i];
        const char *before = w->ended;
        int rc = evaluation_watch_tick(w, l->signals > 0, e);

        if (w->ended && !before) {
            watch_log_say(w, "ending: %s", w->ended);
            evaluation_watch_post_end(w, w->ended);
        }
        if (rc != OK)
            return rc == WATCH_STOPPED ? EVALUATION_LOOP_STOPPED : rc == WATCH_GIVEN_UP ? EVALUATION_LOOP_FAILED : rc;
    }
    return OK;
}

static struct evaluation_watch *next_watch(const struct evaluation_loop *l)
{
    size_t window = l->runner->slots > 1 ? l->runner->slots * FLIGHTS_PER_SLOT : 1;
    struct evaluation_watch *next = NULL;

    for (size_t i = 0; i < l->watch_count; i++)
        if (evaluation_watch_ready(l->watches[i], window) &&
            (!next || l->watches[i]->last_start < next->last_start))
            next = l->watches[i];
    return next;
}

static void loop_start(struct evaluation_loop *l, size_t slot, struct evaluation_watch *w, struct evaluation_flight *f)
{
    struct error why = { 0 };
    int rc = OK;

    if (f->item.checkpoint.step < 0)
        rc = error_set(&why, ERR_ARG, "%s has no step: neither its name nor a tensor global_step gives one of "
                       "0 or more", f->item.checkpoint.name);
    if (rc == OK && (rc = evaluation_flight_reopen(f, &why)) == OK && !evaluation_watch_start(w, f, l->runner->by_path))
        return;
    if (rc == OK)
        rc = l->runner->start(l->runner->context, slot, &f->job, &why);
    if (rc != OK) {
        evaluation_watch_landed(w, f, RUNNER_FAILED, NULL, &why);
        return;
    }
    l->slots[slot] = (struct evaluation_slot){ w, f };
}

/* Puts to work what is idle. 1: something was started or skipped, so it is worth to look again before sleeping. */
static int start_some(struct evaluation_loop *l, struct error *e)
{
    struct evaluation_watch *w;
    int some = 0;

    for (size_t i = 0; i < l->runner->slots; i++) {
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

static void say_status(struct evaluation_loop *l)
{
    size_t done = 0, queued = 0, failed = 0, gone = 0;

    if (l->watch_count == 1) {
        const struct evaluation_watch *w = l->watches[0];
        struct buffer text = BUFFER_EMPTY;

        watch_report_text(w, &text);
        log_progress(l->log, "%s: %s", w->flight_count ? "evaluating" : queue_count(w->queue) ? "pausing" : "waiting",
                     buffer_text(&text));
        buffer_release(&text);
        return;
    }
    for (size_t i = 0; i < l->watch_count; i++) {
        const struct evaluation_watch *w = l->watches[i];

        done += ledger_summary(w->ledger)->done;
        failed += outcomes_count(&w->outcomes, LEDGER_FAILED);
        gone += outcomes_count(&w->outcomes, LEDGER_GONE);
        queued += queue_count(w->queue) + w->flight_count;
    }
    log_progress(l->log, "watching %zu directories: %zu done, %zu queued, %zu failed, %zu gone", l->watch_count, done,
                 queued, failed, gone);
}

/* Until a directory has news, a signal came, `descriptor` is readable, or `wait` seconds are over. */
static int sleep_on(struct evaluation_loop *l, int descriptor, double wait, struct error *e)
{
    struct pollfd fds[] = { { .fd = l->signal_fd, .events = POLLIN },
                            { .fd = descriptor, .events = POLLIN },
                            { .fd = hooks_descriptor(l->hooks), .events = POLLIN },
                            { .fd = lookout_descriptor(l->lookout), .events = POLLIN } };

    if (l->set && !l->signals)
        wait = fmin(wait, evaluation_set_due(l->set));
    if (poll(fds, sizeof fds / sizeof *fds, wait > 0 ? (int)ceil(fmin(wait, 1e6) * 1000) : 0) < 0 && errno != EINTR)
        return error_system(e, "cannot wait for events");
    lookout_heard(l->lookout);
    return OK;
}

static int wait_for_news(struct evaluation_loop *l, struct error *e)
{
    double wait = l->runner->due ? l->runner->due(l->runner->context) : INFINITY;

    if (l->log->terminal && busy(l))
        wait = fmin(wait, 0.1); /* the share that is done moves on */
    wait = fmin(wait, hooks_due(l->hooks));
    for (size_t i = 0; i < l->watch_count; i++)
        wait = fmin(wait, evaluation_watch_due(l->watches[i]));
    return sleep_on(l, l->runner->descriptor, wait, e);
}

static int all_ended(const struct evaluation_loop *l)
{
    for (size_t i = 0; i < l->watch_count; i++)
        if (!l->watches[i]->ended)
            return 0;
    return !l->set || !evaluation_set_open_ended(l->set);
}

static void take_watches(struct evaluation_loop *l)
{
    if (l->set)
        l->watches = evaluation_set_watches(l->set, &l->watch_count);
}

/* Directories that come and go; and what a SIGHUP asks for. */
static int refresh(struct evaluation_loop *l, struct error *e)
{
    int rc = OK;

    if (l->set && (l->hangup || evaluation_set_due(l->set) <= 0)) {
        rc = evaluation_set_refresh(l->set, l->hangup, e);
        take_watches(l);
    }
    if (rc != OK)
        return rc;
    if (l->hangup) {
        l->hangup = 0;
        for (size_t i = 0; i < l->watch_count; i++)
            lookout_look_soon(l->watches[i]->post);
        if (l->hung_up)
            l->hung_up(l->context);
        log_line(l->log, "SIGHUP: looking at everything again");
    }
    return rc;
}

static const char *run_name(const struct evaluation_watch *w, char *out, size_t size)
{
    char path[PATH_MAX];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", w->settings.eval_directory);

    while (n > 1 && n < sizeof path && path[n - 1] == '/')
        path[--n] = '\0';
    snprintf(out, size, "%s%s%s", w->settings.name ? w->settings.name : "", w->settings.name ? "/" : "",
             file_base_name(path));
    return out;
}

/* A failure is said once: whoever looks at the file sees how old it is. */
static void write_prom(struct evaluation_loop *l)
{
    struct evaluation_prom_row *rows = calloc(l->watch_count + 1, sizeof *rows);
    char (*names)[PATH_MAX + NAME_MAX] = calloc(l->watch_count + 1, sizeof *names);
    struct error why = { 0 };
    int rc;

    for (size_t i = 0; rows && names && i < l->watch_count; i++) {
        struct evaluation_watch *w = l->watches[i];

        rows[i] = (struct evaluation_prom_row){ run_name(w, names[i], sizeof names[i]), &w->series,
                                                ledger_summary(w->ledger), queue_count(w->queue) + w->flight_count,
                                                w->last_step };
    }
    rc = rows && names ? evaluation_prom_write(l->prom, rows, l->watch_count, &why)
                       : error_memory(&why, l->prom, "for it");
    if (rc != OK && !l->prom_failed)
        log_event(l->log, "error", NULL, "%s; trying again after each evaluation", why.message);
    l->prom_failed = rc != OK;
    free(rows);
    free(names);
}

static void prom_if_due(struct evaluation_loop *l)
{
    size_t recorded = 1, pending = 0; /* 1: also without a score it is written once */

    if (!l->prom)
        return;
    for (size_t i = 0; i < l->watch_count; i++) {
        recorded += ledger_lines(ledger_summary(l->watches[i]->ledger));
        pending += queue_count(l->watches[i]->queue) + l->watches[i]->flight_count;
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
        watch_report_write(l->watches[i], now);
}

static int run(struct evaluation_loop *l, struct error *e)
{
    for (;;) {
        int rc;

        read_signals(l);
        collect(l);
        hooks_look(l->hooks);
        if (!l->signals && (rc = refresh(l, e)) != OK)
            return rc;
        if ((rc = tick(l, e)) != OK)
            return rc;
        prom_if_due(l);
        report(l, 0);
        if (l->signals > 1 && busy(l))
            return EVALUATION_LOOP_STOPPED;
        if (l->signals && !busy(l))
            return EVALUATION_LOOP_DONE; /* tick() has recorded what had landed */
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

/* Ends what is still being evaluated; it is not recorded, so a later start begins it anew. */
static void stop_all(struct evaluation_loop *l)
{
    for (size_t i = 0; i < l->runner->slots; i++)
        if (l->slots[i].flight)
            l->runner->stop(l->runner->context, i);
    while (busy(l)) {
        struct pollfd fd = { .fd = l->runner->descriptor, .events = POLLIN };
        double due = l->runner->due ? l->runner->due(l->runner->context) : INFINITY;

        poll(&fd, 1, (int)ceil(fmin(due, 1) * 1000));
        for (size_t i = 0; i < l->runner->slots; i++) {
            struct runner_progress progress;
            struct evaluation evaluation = { .examples = -1, .correct = -1 };

            if (!l->slots[i].flight)
                continue;
            if (l->runner->look(l->runner->context, i, &progress, &evaluation, NULL) == RUNNER_BUSY)
                continue;
            evaluation_release(&evaluation);
            evaluation_watch_landed(l->slots[i].watch, l->slots[i].flight, RUNNER_STOPPED, NULL, NULL);
            l->slots[i] = (struct evaluation_slot){ NULL, NULL };
        }
    }
}

/* Why those end that have not come to their end. */
static void post_ends(struct evaluation_loop *l, int rc, const struct error *e)
{
    const char *reason = rc != EVALUATION_LOOP_DONE && e && *e->message ? e->message : "a signal ended the evaluator";

    for (size_t i = 0; i < l->watch_count; i++)
        evaluation_watch_post_end(l->watches[i], l->watches[i]->ended ? l->watches[i]->ended : reason);
}

/* The commands that run or wait, until they are done or a further signal says that nobody wants to wait. */
static void finish_hooks(struct evaluation_loop *l)
{
    const int before = l->signals;

    while (hooks_pending(l->hooks)) {
        struct pollfd fds[2] = { { .fd = l->signal_fd, .events = POLLIN },
                                 { .fd = hooks_descriptor(l->hooks), .events = POLLIN } };

        hooks_look(l->hooks);
        if (!hooks_pending(l->hooks))
            return;
        poll(fds, 2, (int)ceil(fmin(hooks_due(l->hooks), 60) * 1000));
        read_signals(l);
        if (l->signals > before)
            hooks_stop(l->hooks);
    }
}

int evaluation_loop_look_until(struct evaluation_loop *l, int descriptor, struct error *e)
{
    struct pollfd ready = { .fd = descriptor, .events = POLLIN };
    int rc = OK;

    take_watches(l);
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
    int rc = OK;

    take_watches(l);
    l->slots = calloc(l->runner->slots, sizeof *l->slots);
    if (l->slots) {
        rc = run(l, e);
        log_progress_end(l->log);
        if (l->signals > 1)
            hooks_stop(l->hooks);
        stop_all(l);
        report(l, 1);
        if (l->signals < 2)
            post_ends(l, rc, e);
        finish_hooks(l);
    } else {
        rc = error_memory(e, NULL, "for %zu evaluations at a time", l->runner->slots);
    }
    free(l->slots);
    l->slots = NULL;
    return rc;
}
