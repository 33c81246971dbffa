#include "evaluator/evaluation_loop.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what the watcher tells -------------------------------------------------------------------------------------- */

static void on_found(void *context, const struct queue_item *item)
{
    struct evaluation_loop *l = context;

    l->last_news = clock_monotonic();
    if (item->written > l->newest_written)
        l->newest_written = item->written;
    if (queue_full(l->queue) && !l->full_said) {
        l->full_said = 1;
        log_line(l->log, "%zu checkpoints wait with their files open, which is the limit; later ones are opened as "
                 "places become free, and are lost if they are deleted before", l->queue->count);
    }
}

static struct ledger_record *pend(struct evaluation_loop *l, const char *name, int64_t step)
{
    struct ledger_record *r;

    if (l->pending_count == l->pending_capacity) {
        size_t capacity = l->pending_capacity ? l->pending_capacity * 2 : 8;
        struct ledger_record *grown = realloc(l->pending, capacity * sizeof *grown);

        if (!grown) {
            error_set(&l->pending_error, ERR_NOMEM, "no memory to record what became of %s", name);
            return NULL;
        }
        l->pending = grown;
        l->pending_capacity = capacity;
    }
    r = memset(&l->pending[l->pending_count++], 0, sizeof *r);
    r->step = step;
    snprintf(r->checkpoint, sizeof r->checkpoint, "%s", name);
    r->started = r->wall_time = clock_wall();
    return r;
}

static void on_failed(void *context, const struct watcher_failure *failure)
{
    struct evaluation_loop *l = context;
    struct ledger_record *r = pend(l, failure->name, failure->step);

    if (!r)
        return;
    r->status = LEDGER_FAILED;
    r->has_digest = failure->has_digest;
    r->digest = failure->digest;
    snprintf(r->reason, sizeof r->reason, "%s", failure->reason);
    log_line(l->log, "%s: failed: not whole, and nothing changed any more: %s", failure->name, failure->reason);
}

static void on_gone(void *context, const char *name, int64_t step)
{
    struct evaluation_loop *l = context;
    struct ledger_record *r = pend(l, name, step);

    if (!r)
        return;
    r->status = LEDGER_GONE;
    snprintf(r->reason, sizeof r->reason, "deleted before it could be opened whole");
    log_line(l->log, "%s: gone: %s", name, r->reason);
}

static void on_directory(void *context, int there)
{
    struct evaluation_loop *l = context;
    const char *directory = l->settings.checkpoint_directory;

    if (there)
        log_line(l->log, "watching %s", directory);
    else if (!l->first_look)
        log_line(l->log, "%s does not exist yet; waiting for it", directory);
    else
        log_line(l->log, "%s is gone; waiting for it to come back", directory);
}

static void on_trouble(void *context, const char *sentence)
{
    struct evaluation_loop *l = context;

    log_line(l->log, "%s", sentence);
}

struct watcher_events evaluation_loop_events(struct evaluation_loop *l)
{
    return (struct watcher_events){ l, on_found, on_failed, on_gone, on_directory, on_trouble };
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static void read_signals(struct evaluation_loop *l)
{
    unsigned char number;

    while (read(l->signal_fd, &number, 1) == 1) {
        l->signals++;
        if (l->signals == 1)
            log_line(l->log, "%s: ending after the checkpoint in hand; a second signal stops at once",
                     number == SIGINT ? "SIGINT" : "SIGTERM");
    }
}

static int look_if_due(struct evaluation_loop *l, struct error *e)
{
    if (!watcher_should_look(l->watcher))
        return OK;
    return watcher_look(l->watcher, e);
}

/* Sleeps until something changes in the directory, a signal comes, or seconds are over; then looks if that is due. */
static int wait_for_news(struct evaluation_loop *l, double seconds, struct error *e)
{
    struct pollfd fds[2] = { { .fd = l->signal_fd, .events = POLLIN },
                             { .fd = watcher_descriptor(l->watcher), .events = POLLIN } };
    double due = watcher_due(l->watcher), wait = seconds < due ? seconds : due;

    poll(fds, 2, wait > 0 ? (int)ceil(wait * 1000) : 0);
    read_signals(l);
    return look_if_due(l, e);
}

static void say_status(struct evaluation_loop *l, const char *doing)
{
    const struct ledger_summary *s = ledger_summary(l->ledger);
    char best[320] = "none yet", newest[64] = "no checkpoint yet";

    if (s->has_best)
        snprintf(best, sizeof best, "%.3f (%s)", s->best_precision, s->best_checkpoint);
    if (l->newest_written > 0)
        snprintf(newest, sizeof newest, "newest %.0f s old", fmax(0, clock_wall() - l->newest_written));
    log_progress(l->log, "%s %s: %zu done, %zu queued, %zu not whole, %zu failed, %zu gone, best %s, %s", doing,
                 l->settings.checkpoint_directory, s->done, l->queue->count, watcher_undecided(l->watcher), s->failed,
                 s->gone, best, newest);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* A disk that is full or failing: says so once and tries until it works or a signal ends it. 1: try again, 0: give up,
 * negative: an error of the waiting itself, in e. */
static int try_again(struct evaluation_loop *l, const char *what, const char *name, int *said,
                     const struct error *why, struct error *e)
{
    double until = clock_monotonic() + l->settings.retry_seconds;
    int rc = OK;

    if (!*said)
        log_line(l->log, "%s: %s: %s; trying again every %g s", name, what, why->message, l->settings.retry_seconds);
    *said = 1;
    while (rc == OK && !l->signals && clock_monotonic() < until)
        rc = wait_for_news(l, until - clock_monotonic(), e);
    return rc != OK ? rc : !l->signals;
}

/* OK, EVALUATION_LOOP_FAILED when given up, or negative. */
static int append(struct evaluation_loop *l, const struct ledger_record *r, struct error *e)
{
    struct buffer line = BUFFER_EMPTY;
    struct error why = { 0 };
    int said = 0, rc;

    while (ledger_append(l->ledger, r, &why) != OK)
        if ((rc = try_again(l, "not recorded", r->checkpoint, &said, &why, e)) <= 0) {
            if (!rc)
                error_set(e, why.code, "%s is not recorded and will be evaluated again: %.300s", r->checkpoint,
                          why.message);
            return rc ? rc : EVALUATION_LOOP_FAILED;
        }
    if (said)
        log_line(l->log, "%s: recorded now", r->checkpoint);
    if (l->settings.json) {
        ledger_format(r, &line);
        fwrite(buffer_text(&line), 1, line.length, stdout);
        fflush(stdout);
        buffer_release(&line);
    }
    return OK;
}

static int append_pending(struct evaluation_loop *l, struct error *e)
{
    if (l->pending_error.code) {
        if (e)
            *e = l->pending_error;
        return l->pending_error.code;
    }
    while (l->pending_count) {
        struct ledger_record first = l->pending[0]; /* looking while we wait may add to the list */
        int rc = append(l, &first, e);

        if (rc != OK)
            return rc;
        memmove(l->pending, l->pending + 1, --l->pending_count * sizeof *l->pending);
        if (l->settings.strict) {
            error_set(e, ERR_CORRUPT, "%s: %.300s; ending because of --strict", first.checkpoint, first.reason);
            return EVALUATION_LOOP_STOPPED;
        }
    }
    return OK;
}

static int write_points(struct evaluation_loop *l, const struct ledger_record *r, const struct queue_item *item,
                        struct error *e)
{
    struct evaluation_point p = { r->step, l->settings.checkpoint_time ? item->modified : r->wall_time, r->precision,
                                  r->best_precision, r->loss, r->cross_entropy };
    struct error why = { 0 };
    int said = 0, rc;

    while (evaluation_log_point(l->events, &p, &why) != OK)
        if ((rc = try_again(l, "points not written", r->checkpoint, &said, &why, e)) <= 0) {
            if (!rc)
                error_set(e, why.code, "%s is not recorded and will be evaluated again: %.300s", r->checkpoint,
                          why.message);
            return rc ? rc : EVALUATION_LOOP_FAILED;
        }
    return OK;
}

/* ---- one checkpoint ---------------------------------------------------------------------------------------------- */

struct tick {
    struct evaluation_loop *l;
    const char *name;
    struct error error; /* of a look */
};

static int on_tick(void *context, double share)
{
    struct tick *t = context;
    struct evaluation_loop *l = t->l;

    read_signals(l);
    if (l->signals > 1 || look_if_due(l, &t->error) != OK)
        return 1;
    if (l->log->terminal)
        log_progress(l->log, "%s: %.0f %%, %zu queued", t->name, share * 100, l->queue->count);
    return 0;
}

static void fill(struct evaluation_loop *l, struct ledger_record *r, const struct metrics *m)
{
    const struct ledger_summary *s = ledger_summary(l->ledger);

    r->has_metrics = 1;
    r->precision = metrics_precision(m);
    r->cross_entropy = metrics_mean_cross_entropy(m);
    r->loss = metrics_loss(m);
    r->correct = m->correct;
    r->examples = m->examples;
    r->run = evaluation_log_run(l->events, r->step);
    r->best_precision = s->has_best ? s->best_precision : NAN;
    if (isnan(r->loss)) {
        r->status = LEDGER_FAILED;
        snprintf(r->reason, sizeof r->reason, "the loss is NaN");
    } else if (ledger_improves(s, r->precision)) {
        r->best_precision = r->precision;
    }
}

static void say_result(struct evaluation_loop *l, const struct ledger_record *r)
{
    const char *program = l->log->program;

    if (r->status == LEDGER_FAILED)
        log_line(l->log, "%s: failed: %s", r->checkpoint, r->reason);
    if (!r->has_metrics)
        return;
    l->log->program = NULL; /* a line people parse: as it always was */
    log_line(l->log, "step: %" PRId64 ", %s: loss: %.3f, precision: %.3f, best precision: %.3f", r->step,
             r->checkpoint, r->loss, r->precision, r->best_precision);
    l->log->program = program;
}

static void say_new_run(struct evaluation_loop *l, const struct ledger_record *r)
{
    char directory[4096];

    if (r->run == (ledger_summary(l->ledger)->last_run) || !r->run ||
        evaluation_log_directory(l->events, r->run, directory, sizeof directory, NULL) != OK)
        return;
    log_line(l->log, "%s: step %" PRId64 " is lower than one that was evaluated before: its points go to %s",
             r->checkpoint, r->step, directory);
}

static int load(struct evaluation_loop *l, const struct queue_item *item, struct ledger_record *r, struct error *why)
{
    struct runner_checkpoint c = { item->name, l->settings.checkpoint_directory, item->step, item->bundle };
    const char *weights = NULL;
    int rc;

    if (item->step < 0)
        return error_set(why, ERR_ARG, "%s has neither a tensor global_step nor a step in its name", item->name);
    if ((rc = l->runner->load(l->runner->context, &c, &weights, why)) != OK)
        return rc;
    snprintf(r->weights, sizeof r->weights, "%s", weights);
    if (!l->weights_said || strcmp(l->weights_said, weights)) {
        l->weights_said = weights;
        log_line(l->log, "%s: evaluated with the %s", item->name,
                 !strcmp(weights, "mixed") ? "moving averages of those variables that have one" :
                 !strcmp(weights, "variables") ? "variables themselves" : "moving averages of the variables");
    }
    return OK;
}

static int evaluate(struct evaluation_loop *l, const struct queue_item *item, struct error *e)
{
    struct ledger_record r = { .step = item->step, .digest = item->digest, .has_digest = 1 };
    struct tick tick = { .l = l, .name = item->name };
    struct error why = { 0 };
    struct metrics metrics;
    double begin = clock_monotonic();
    int rc;

    snprintf(r.checkpoint, sizeof r.checkpoint, "%s", item->name);
    r.started = clock_wall();
    r.lag = r.started - item->written;
    l->last_start = begin;
    rc = load(l, item, &r, &why);
    if (rc == OK && (rc = l->runner->evaluate(l->runner->context, on_tick, &tick, &metrics, &why)) == OK)
        fill(l, &r, &metrics);
    if (tick.error.code) {
        if (e)
            *e = tick.error;
        return tick.error.code;
    }
    if (rc == RUNNER_STOPPED)
        return EVALUATION_LOOP_STOPPED;
    r.seconds = clock_monotonic() - begin;
    r.wall_time = clock_wall();
    log_progress_end(l->log);
    if (rc != OK) {
        r.status = LEDGER_FAILED;
        snprintf(r.reason, sizeof r.reason, "%s", why.message);
    } else {
        say_new_run(l, &r);
        if ((rc = write_points(l, &r, item, e)) != OK)
            return rc;
    }
    if ((rc = append(l, &r, e)) != OK)
        return rc;
    say_result(l, &r);
    l->evaluations++;
    l->last_news = clock_monotonic();
    if (l->settings.strict && r.status == LEDGER_FAILED) {
        error_set(e, ERR_CORRUPT, "%s: %.300s; ending because of --strict", r.checkpoint, r.reason);
        return EVALUATION_LOOP_STOPPED;
    }
    return OK;
}

/* ---- which, and how long ----------------------------------------------------------------------------------------- */

/* NULL: evaluate it. Else why it is passed over. What is skipped stays out of the ledger: without the option, or with
 * another, it is evaluated by a later start. So a restart must not take what an earlier process has skipped: of what
 * is found in the first look, the two selecting modes take only what is beyond the ledger's highest step. */
static const char *skip(struct evaluation_loop *l, const struct queue_item *item)
{
    const struct evaluation_loop_settings *s = &l->settings;
    int64_t highest = ledger_summary(l->ledger)->highest_step;
    int selecting = s->latest_only || s->every > 1;

    if (item->step < s->from)
        return "--from";
    if (selecting && item->found <= l->first_look && item->step < highest)
        return s->latest_only ? "--latest-only" : "--every";
    if (s->latest_only && l->queue->count)
        return "--latest-only";
    if (s->every > 1 && l->position++ % s->every)
        return "--every";
    return NULL;
}

static int evaluate_next(struct evaluation_loop *l, struct error *e)
{
    struct queue_item item;
    const char *why;
    int rc = OK;

    if (!queue_take(l->queue, &item))
        return OK;
    if ((why = skip(l, &item))) {
        l->skipped++;
        log_line(l->log, "%s: skipped (%s)", item.name, why);
    } else {
        rc = evaluate(l, &item, e);
    }
    queue_item_release(&item);
    return rc;
}

/* A process that has ended but was not waited for still has a number; for us it is gone. */
static int process_gone(int64_t pid)
{
    char path[64], text[512] = "", *state;
    FILE *f;

    if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
        return 1;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    if (!(f = fopen(path, "re")))
        return 0;
    if (!fgets(text, sizeof text, f))
        *text = '\0';
    fclose(f);
    state = strrchr(text, ')');
    return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

void evaluation_loop_note_training(struct evaluation_loop *l)
{
    struct training_state state;
    int known = training_state_read(l->settings.checkpoint_directory, &state, NULL) == 1;
    int failed = known && !strcmp(state.state, "failed");

    l->finished = ending_training_finished(&l->training, known ? &state : NULL, clock_monotonic());
    if (failed && !l->failed_training_said && !l->settings.ending.forever)
        log_line(l->log, "training.json says that the training failed at step %" PRId64 "; waiting for its restart",
                 state.global_step);
    l->failed_training_said = failed;
}

static const char *reason_to_end(struct evaluation_loop *l)
{
    const struct ending_rules *rules = &l->settings.ending;
    struct ending_facts facts = { .idle_seconds = clock_monotonic() - l->last_news, .evaluations = l->evaluations,
                                  .highest_step = ledger_summary(l->ledger)->highest_step };

    evaluation_loop_note_training(l);
    facts.finished = l->finished;
    facts.done_file_there = rules->done_file && access(rules->done_file, F_OK) == 0;
    facts.process_gone = rules->pid && process_gone(rules->pid);
    return ending_reason(rules, &facts);
}

static int enough(const struct evaluation_loop *l)
{
    int64_t most = l->settings.ending.max_evaluations;

    return most && l->evaluations >= most;
}

/* Seconds until the next evaluation may start. */
static double interval_left(const struct evaluation_loop *l)
{
    double left = l->last_start + l->settings.min_interval - clock_monotonic();

    return l->settings.min_interval > 0 && l->last_start > 0 && left > 0 ? left : 0;
}

static int run(struct evaluation_loop *l, struct error *e)
{
    const char *draining = NULL, *reason;
    int rc = OK;

    for (;;) {
        read_signals(l);
        if ((rc = append_pending(l, e)) != OK || l->signals || enough(l))
            break;
        if ((rc = look_if_due(l, e)) != OK)
            break;
        if (l->queue->count && interval_left(l) <= 0) {
            if ((rc = evaluate_next(l, e)) != OK)
                break;
            continue;
        }
        reason = reason_to_end(l);
        if (reason && !draining) {
            /* The condition held before this listing, so whatever was there when it came true is in it. */
            if ((rc = watcher_look(l->watcher, e)) != OK)
                break;
            watcher_set_closed(l->watcher, 1);
            draining = reason;
            continue;
        }
        if (!reason && draining) {
            watcher_set_closed(l->watcher, 0);
            draining = NULL;
        }
        if (draining && !l->queue->count && !l->pending_count && !watcher_undecided(l->watcher)) {
            log_line(l->log, "ending: %s", draining);
            break;
        }
        say_status(l, l->queue->count ? "pausing," : "waiting for checkpoints in");
        if ((rc = wait_for_news(l, l->queue->count ? interval_left(l) : 1e6, e)) != OK)
            break;
    }
    if (rc == OK && enough(l))
        log_line(l->log, "ending: %s", ending_reason(&l->settings.ending,
                                                     &(struct ending_facts){ .evaluations = l->evaluations }));
    return rc;
}

int evaluation_loop_run(struct evaluation_loop *l, struct error *e)
{
    int rc;

    l->last_news = clock_monotonic();
    if (ledger_summary(l->ledger)->highest_step >= 0)
        l->position = 1; /* the one before was evaluated by an earlier process */
    rc = run(l, e);
    log_progress_end(l->log);
    free(l->pending);
    l->pending = NULL;
    l->pending_count = l->pending_capacity = 0;
    return rc;
}
