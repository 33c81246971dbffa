#include "evaluator/evaluation_watch.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "evaluator/evaluation_home.h"
#include "evaluator/evaluation_record.h"
#include "evaluator/files/file_stamp.h"
#include "evaluator/keep/pin.h"
#include "evaluator/watch_log.h"
#include "evaluator/watch_report.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISTURBED_MAX = 3, /* so often in a row may a checkpoint change during its evaluation */
       LACK_SECONDS = 1 };

/* ---- what the watcher tells -------------------------------------------------------------------------------------- */

static void on_found(struct evaluation_watch *w, const struct watcher_news *news)
{
    w->last_news = clock_monotonic();
    if (news->written >= w->newest_written) {
        w->newest_written = news->written;
        w->newest_step = news->checkpoint->step;
    }
    if (news->full && !w->full_said) {
        w->full_said = 1;
        watch_log_say(w, "%zu checkpoints wait %s, which is the limit; later ones are opened as places become free, "
                      "and are lost if they are deleted before", w->settings.queue_limit,
                      w->settings.pin ? "pinned" : "with their files open");
    }
}

static struct ledger_record *pend(struct evaluation_watch *w, const struct checkpoint_identity *checkpoint,
                                  enum ledger_status status, const char *reason)
{
    struct ledger_record *r;

    if (!ARRAY_ROOM(w->pending, w->pending_capacity, w->pending_count + 1)) {
        error_memory(&w->pending_error, NULL, "to record what became of %s", checkpoint->name);
        return NULL;
    }
    r = &w->pending[w->pending_count++];
    *r = (struct ledger_record){ .checkpoint = *checkpoint, .status = status, .wall_time = clock_wall() };
    r->started = r->wall_time;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    return r;
}

static void on_failed(struct evaluation_watch *w, const struct checkpoint_identity *checkpoint, const char *reason)
{
    const struct ledger_record *r = pend(w, checkpoint, LEDGER_FAILED, reason);

    if (r)
        watch_log_of(w, r, "error", "%s: failed: not whole, and nothing changed any more: %s", checkpoint->name,
                     reason);
}

static void on_gone(struct evaluation_watch *w, const struct checkpoint_identity *checkpoint)
{
    static const char reason[] = "deleted before it could be opened whole";
    const struct ledger_record *r;

    if (w->settings.watcher.source.steps.from != STEP_FROM_NAME) /* the name comes back, and no step was known yet */
        watch_log_say(w, "%s: %s", checkpoint->name, reason);
    else if ((r = pend(w, checkpoint, LEDGER_GONE, reason)))
        watch_log_of(w, r, "warning", "%s: gone: %s", checkpoint->name, reason);
}

static void on_news(void *context, const struct watcher_news *news)
{
    struct evaluation_watch *w = context;
    const char *directory = w->settings.checkpoint_directory;

    switch (news->kind) {
    case WATCHER_FOUND:
        on_found(w, news);
        break;
    case WATCHER_FAILED:
        on_failed(w, news->checkpoint, news->text);
        break;
    case WATCHER_KNOWN:
        outcomes_read(&w->outcomes, news->text);
        break;
    case WATCHER_LOST:
        on_gone(w, news->checkpoint);
        break;
    case WATCHER_THERE:
        watch_log_say(w, "watching %s", directory);
        break;
    case WATCHER_NOWHERE:
        watch_log_say(w, w->first_look > 0 ? "%s is gone; waiting for it to come back"
                                           : "%s does not exist yet; waiting for it", directory);
        break;
    case WATCHER_TROUBLE:
        watch_log_warn(w, "warning", "%s", news->text);
        break;
    }
}

int evaluation_watch_hear(struct evaluation_watch *w, struct error *e)
{
    return lookout_tell(w->post, on_news, w, &w->undecided, e);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* A pin of an earlier process: recorded already, or still to be evaluated. */
static int recall_pin(void *context, const struct pin *pin, const char *path, uint64_t bytes, struct error *e)
{
    struct evaluation_watch *w = context;
    struct queue_item item = { .checkpoint = pin->checkpoint, .kind = pin->kind, .pinned_bytes = bytes,
                               .found = clock_wall() };
    struct stat st;
    char witness[PATH_MAX];
    int rc;

    if (queue_knows(w->queue, pin->checkpoint.name, pin->checkpoint.digest)) {
        pin_remove(path);
        return OK;
    }
    if (pin->checkpoint.step > w->greatest_step)
        w->greatest_step = pin->checkpoint.step;
    if (queue_full(w->queue))
        return OK; /* the next start, or the directory itself, has it */
    item.written = item.modified = item.found;
    if (checkpoint_witness(pin->kind, path, witness, sizeof witness, NULL) == OK && stat(witness, &st) == 0)
        item.written = item.modified = file_stamp_modified(&st);
    rc = (item.pinned = strdup(path)) ? queue_offer(w->queue, &item, e)
                                      : error_memory(e, NULL, "for the pinned %s", pin->checkpoint.name);
    if (rc != QUEUE_ADDED)
        queue_item_release(&item);
    return rc < 0 ? rc : OK;
}

static int open_post(struct evaluation_watch *w, struct error *e)
{
    struct watcher_options *options = &w->settings.watcher;

    options->pin_directory = w->settings.pin ? w->settings.eval_directory : NULL;
    if (w->greatest_step >= 0)
        options->counted = step_rule_number(&options->source.steps, w->greatest_step);
    return lookout_open(&w->post, w->settings.lookout, w->settings.checkpoint_directory, options, w->queue, e);
}

static void note_training(struct evaluation_watch *w)
{
    struct training_state state;
    int known = training_state_read(w->settings.checkpoint_directory, &state, NULL) == 1;
    int failed = known && (!strcmp(state.state, "failed") ||
                           (w->settings.ending.wait_for_restart && !strcmp(state.state, "stopped")));

    w->training_end = ending_training_ended(&w->training, known ? &state : NULL, clock_monotonic());
    if (failed && !w->failed_training_said && !w->settings.ending.forever)
        watch_log_say(w, "training.json says that the training %s at step %" PRId64 "; waiting for its restart",
                      strcmp(state.state, "failed") ? "was stopped" : "failed", state.global_step);
    w->failed_training_said = failed;
}

int evaluation_watch_open(struct evaluation_watch **out, const struct evaluation_watch_settings *settings,
                          struct log *log, struct error *e)
{
    struct evaluation_watch *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w)
        return error_memory(e, NULL, "to watch %s", settings->checkpoint_directory);
    w->settings = *settings;
    w->log = log;
    w->lock = (struct evaluation_lock_held)EVALUATION_LOCK_NOT_HELD;
    w->last_step = w->greatest_step = w->newest_step = -1;
    w->outcomes.by_step = settings->watcher.source.steps.from != STEP_FROM_NAME;
    w->last_news = clock_monotonic();
    if ((rc = queue_new(&w->queue, settings->queue_limit, e)) != OK || (rc = evaluation_home_open(w, e)) != OK ||
        (rc = pin_recover(settings->eval_directory, recall_pin, w, e)) != OK || (rc = open_post(w, e)) != OK ||
        (rc = evaluation_watch_hear(w, e)) != OK) {
        evaluation_watch_close(w);
        return rc;
    }
    w->first_look = clock_wall();
    note_training(w);
    *out = w;
    return OK;
}

void evaluation_watch_drop(struct evaluation_watch *w, struct evaluation_flight *flight)
{
    const int large = flight->evaluation.detail != NULL;
    size_t i = 0;

    while (w->flights[i] != flight)
        i++;
    memmove(w->flights + i, w->flights + i + 1, (--w->flight_count - i) * sizeof *w->flights);
    if (*flight->item.checkpoint.name)
        evaluation_best_forget(w->keeper, &flight->item.checkpoint);
    evaluation_flight_free(flight);
    if (large)
        malloc_trim(0); /* what pictures and tables took: else the heap creeps up, by holes, for hundreds of them */
}

void evaluation_watch_close(struct evaluation_watch *w)
{
    char path[PATH_MAX];

    if (!w)
        return;
    lookout_close(w->post);
    while (w->flight_count)
        evaluation_watch_drop(w, w->flights[0]);
    free(w->flights);
    free(w->pending);
    evaluation_log_close(w->points, NULL);
    evaluation_best_close(w->keeper);
    ledger_close(w->ledger);
    evaluation_series_release(&w->series);
    outcomes_release(&w->outcomes);
    queue_free(w->queue);
    if (file_join(path, sizeof path, w->settings.eval_directory, EVALUATION_LOCK_FILE, NULL) == OK)
        evaluation_lock_release(path, &w->lock, w->ended ? w->ended : "stopped");
    free(w);
}

/* ---- which, and how long ----------------------------------------------------------------------------------------- */

/* NULL: evaluate it. Else why it is passed over. What is skipped stays out of the ledger: without the option, or with
 * another, it is evaluated by a later start. So a restart must not take what an earlier process has skipped: of what
 * is found in the first look, the two selecting modes take only what is beyond the ledger's highest step. */
static const char *skip(struct evaluation_watch *w, const struct queue_item *item)
{
    const struct evaluation_watch_settings *s = &w->settings;
    int64_t highest = ledger_summary(w->ledger)->highest_step;
    int selecting = s->latest_only || s->every > 1;

    if (item->checkpoint.step >= 0 && item->checkpoint.step < s->from)
        return "--from";
    if (selecting && item->found <= w->first_look && item->checkpoint.step < highest)
        return s->latest_only ? "--latest-only" : "--every";
    if (s->latest_only && queue_count(w->queue))
        return "--latest-only";
    if (s->every > 1 && !item->again && w->position++ % s->every)
        return "--every";
    return NULL;
}

static int take_off(struct evaluation_watch *w, const struct queue_item *item, struct evaluation_flight **out,
                    struct error *e)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    size_t i = w->flight_count;
    struct evaluation_flight *f;
    int rc;

    if (!ARRAY_ROOM(w->flights, w->flight_capacity, w->flight_count + 1))
        return error_memory(e, NULL, "to evaluate %s", item->checkpoint.name);
    if ((rc = evaluation_flight_new(&f, item, w->settings.checkpoint_directory, w->settings.eval_directory,
                                    (int64_t)(ledger_lines(s) + w->flight_count), e)) != OK)
        return rc;
    w->last_start = f->begin;
    evaluation_best_before(w->keeper, f->directory, item->pinned != NULL, &item->checkpoint);
    while (i > 0 && w->flights[i - 1]->item.checkpoint.step > item->checkpoint.step)
        i--;
    /* One whose points are out already keeps its place, whatever came late. */
    while (i < w->flight_count && w->flights[i]->state >= FLIGHT_PREPARED)
        i++;
    memmove(w->flights + i + 1, w->flights + i, (w->flight_count++ - i) * sizeof *w->flights);
    *out = w->flights[i] = f;
    return 1;
}

int evaluation_watch_take(struct evaluation_watch *w, struct evaluation_flight **out, struct error *e)
{
    struct queue_item item;
    const char *why;
    int rc;

    while (queue_take(w->queue, &item)) {
        if (!(why = skip(w, &item))) {
            if ((rc = take_off(w, &item, out, e)) < 0)
                queue_item_release(&item);
            return rc;
        }
        w->skipped++;
        if (item.pinned)
            pin_remove(item.pinned);
        watch_log_say(w, "%s: skipped (%s)", item.checkpoint.name, why);
        queue_item_release(&item);
    }
    return 0;
}

static void say_lack(struct evaluation_watch *w, struct queue_item *item, const char *lack)
{
    if (!item->lack_said)
        watch_log_warn(w, "warning", "%s waits: %s; trying again every second", item->checkpoint.name, lack);
    item->lack_said = 1;
}

void evaluation_watch_progress(struct evaluation_watch *w, struct evaluation_flight *flight,
                               const struct runner_progress *progress)
{
    static const char *const said[] = { "", "variables themselves", "moving averages of the variables",
                                        "moving averages of those variables that have one" };
    char so_far[HUMAN_TEXT_MAX];

    if (progress->weights != WEIGHTS_UNKNOWN && progress->weights != w->weights_said) {
        w->weights_said = progress->weights;
        watch_log_say(w, "%s: evaluated with the %s", flight->item.checkpoint.name, said[progress->weights]);
    }
    if (progress->lack)
        say_lack(w, &flight->item, progress->lack);
    if (!w->log->terminal)
        return;
    if (progress->share < 0)
        human_duration(clock_wall() - flight->record.started, so_far);
    else
        snprintf(so_far, sizeof so_far, "%.0f %%", progress->share * 100);
    log_progress(w->log, "%s%s%s: %s, %zu queued", w->settings.name ? w->settings.name : "",
                 w->settings.name ? ": " : "", flight->item.checkpoint.name, so_far, queue_count(w->queue));
}

/* For a later look: what is there now is another checkpoint, or not whole. Nobody looks meanwhile, who might pin it in
 * the same place. */
static void drop_changed(struct evaluation_watch *w, struct watcher *held, struct evaluation_flight *f)
{
    watcher_uncount(held, f->item.checkpoint.step);
    queue_forget(w->queue, f->item.checkpoint.name, f->item.checkpoint.digest);
    if (f->item.pinned)
        pin_remove(f->item.pinned);
    evaluation_watch_drop(w, f);
}

int evaluation_watch_start(struct evaluation_watch *w, struct evaluation_flight *f, int by_path)
{
    struct watcher *watcher;
    uint64_t now;
    int there;

    f->by_path = by_path;
    if (!by_path || evaluation_flight_files(f, &now, &(struct error){ 0 }) != FLIGHT_FILES_CHANGED)
        return 1;
    watcher = lookout_hold(w->post);
    if ((there = watcher_look_again(watcher, f->item.checkpoint.name, 0) >= 0)) {
        w->skipped++;
        watch_log_say(w, "%s: changed while it waited; what is there now is evaluated instead",
                      f->item.checkpoint.name);
        drop_changed(w, watcher, f);
    }
    lookout_release(w->post);
    return !there;
}

static void remember_after(struct evaluation_watch *w, struct evaluation_flight *f, uint64_t digest)
{
    if (queue_remember(w->queue, f->item.checkpoint.name, digest, NULL) == OK)
        f->record.checkpoint.digest_after = digest;
}

static int drop_if_again(struct evaluation_watch *w, struct watcher *held, struct evaluation_flight *f, int *times)
{
    *times = watcher_look_again(held, f->item.checkpoint.name, 1);
    if (*times >= DISTURBED_MAX)
        watcher_undisturbed(held, f->item.checkpoint.name);
    if (*times < 0 || *times >= DISTURBED_MAX)
        return 0;
    watch_log_warn(w, "warning", "%s: changed while it was evaluated; its result is dropped, and it is evaluated "
                   "again when it has stopped changing", f->item.checkpoint.name);
    drop_changed(w, held, f);
    return 1;
}

/* It changed during its evaluation. 1: it is dropped, to be evaluated again; 0: there is no point in that, why. */
static int again(struct evaluation_watch *w, struct evaluation_flight *f, uint64_t now, enum runner_state *state,
                 struct error *why)
{
    int times, dropped = drop_if_again(w, lookout_hold(w->post), f, &times);

    lookout_release(w->post);
    if (dropped)
        return 1;
    *state = times < 0 ? RUNNER_GONE : RUNNER_FAILED;
    if (times < 0) {
        error_set(why, ERR_IO, "changed while it was evaluated, and is gone");
        return 0;
    }
    error_set(why, ERR_PEER, "changed during each of %d evaluations; either the command writes to it, or it is "
              "overwritten faster than it is evaluated", times);
    if (now)
        remember_after(w, f, now);
    return 0;
}

/* What the machine lacks says nothing of the checkpoint, which waits with its files open, or pinned, as before. */
static void take_back(struct evaluation_watch *w, struct evaluation_flight *f, const struct error *lack)
{
    struct queue_item item = f->item;

    evaluation_best_forget(w->keeper, &item.checkpoint);
    memset(&f->item, 0, sizeof f->item);
    evaluation_watch_drop(w, f);
    say_lack(w, &item, lack->message);
    item.again = 1;
    w->lack_until = clock_monotonic() + LACK_SECONDS;
    if (queue_return(w->queue, &item, &w->pending_error) != OK)
        queue_item_release(&item);
}

void evaluation_watch_landed(struct evaluation_watch *w, struct evaluation_flight *f, enum runner_state state,
                             struct evaluation *v, const struct error *why)
{
    enum evaluation_flight_files files = FLIGHT_FILES_SAME;
    struct error changed = { 0 };
    uint64_t now = 0;

    if (state == RUNNER_STOPPED) {
        evaluation_watch_drop(w, f);
        return;
    }
    if (state == RUNNER_FAILED && f->item.pinned && !f->item.opened && access(f->witness, F_OK) < 0) {
        evaluation_watch_find_again(w, &f->item);
        evaluation_watch_drop(w, f);
        return;
    }
    if (f->by_path || state == RUNNER_FAILED) /* one that held it open has read what was found, or failed on it */
        files = evaluation_flight_files(f, &now, &changed);
    if (files == FLIGHT_FILES_LACK || (state == RUNNER_FAILED && error_is_lack(why))) {
        if (state == RUNNER_DONE)
            evaluation_release(v);
        take_back(w, f, files == FLIGHT_FILES_LACK ? &changed : why);
        return;
    }
    if (files == FLIGHT_FILES_CHANGED) {
        if (state == RUNNER_DONE)
            evaluation_release(v);
        if (again(w, f, now, &state, &changed))
            return;
        why = &changed;
    } else if (f->item.again) {
        watcher_undisturbed(lookout_hold(w->post), f->item.checkpoint.name);
        lookout_release(w->post);
    }
    if (files == FLIGHT_FILES_GREW)
        remember_after(w, f, now);
    evaluation_flight_land(f, state, v, why);
    if (w->settings.checkpoint_time)
        f->record.point_time = f->item.modified;
}

void evaluation_watch_find_again(struct evaluation_watch *w, const struct queue_item *item)
{
    const struct checkpoint_identity gone = checkpoint_identity_of(item->checkpoint.name, item->checkpoint.step);

    struct watcher *watcher = lookout_hold(w->post);
    int there;

    queue_forget(w->queue, gone.name, item->checkpoint.digest);
    there = watcher_look_again(watcher, gone.name, 0) >= 0;
    lookout_release(w->post);
    if (!there)
        on_gone(w, &gone);
}

static const char *reason_to_end(struct evaluation_watch *w)
{
    const struct ending_rules *rules = &w->settings.ending;
    struct ending_facts facts = { .idle_seconds = clock_monotonic() - w->last_news, .evaluations = w->evaluations,
                                  .highest_step = ledger_summary(w->ledger)->highest_step };

    note_training(w);
    facts.training = w->training_end;
    facts.done_file_there = rules->done_file && access(rules->done_file, F_OK) == 0;
    facts.process_gone = rules->pid && !process_lives(rules->pid, -1);
    return ending_reason(rules, &facts);
}

/* Seconds until the next evaluation may start. */
static double interval_left(const struct evaluation_watch *w)
{
    const double now = clock_monotonic(), left = w->last_start + w->settings.min_interval - now;
    const double interval = w->settings.min_interval > 0 && w->last_start > 0 ? left : 0;

    return fmax(fmax(interval, w->lack_until - now), 0);
}

static int enough(const struct evaluation_watch *w, size_t flights)
{
    int64_t most = w->settings.ending.max_evaluations;

    return most && w->evaluations + (int64_t)flights >= most;
}

int evaluation_watch_ready(const struct evaluation_watch *w, size_t window)
{
    return queue_count(w->queue) && !w->ended && !w->pending_count && w->retry_at <= 0 && w->flight_count < window &&
           interval_left(w) <= 0 && !enough(w, w->flight_count);
}

/* The condition to end holds, or does no more: whether new names count, from a last look on. */
static int drain(struct evaluation_watch *w, const char *reason, struct error *e)
{
    struct watcher *watcher = lookout_hold(w->post);
    /* The condition held before this listing, so whatever was there when it came true is in it. */
    int rc = reason ? watcher_look_last(watcher, e) : OK;

    watcher_set_closed(watcher, reason != NULL);
    lookout_release(w->post);
    w->draining = reason;
    return rc == OK ? evaluation_watch_hear(w, e) : rc;
}

/* Nothing waits and nothing is evaluated: has the work come to its end? */
static int decide(struct evaluation_watch *w, struct error *e)
{
    const char *reason = reason_to_end(w);
    int rc;

    if (!reason != !w->draining && (rc = drain(w, reason, e)) != OK)
        return rc;
    if (w->draining && !queue_count(w->queue) && !w->pending_count && !w->undecided)
        w->ended = w->draining;
    return OK;
}

int evaluation_watch_tick(struct evaluation_watch *w, int signalled, struct error *e)
{
    int rc;

    if (w->ended)
        return OK;
    if ((rc = evaluation_watch_hear(w, e)) != OK)
        return rc;
    if (w->retry_at > clock_monotonic() && !signalled)
        return OK;
    if ((rc = evaluation_home_check(w, signalled, e)) != OK ||
        (rc = evaluation_record_pending(w, signalled, e)) != OK ||
        (rc = evaluation_record_flights(w, signalled, e)) != OK)
        return rc == EVALUATION_RECORD_LATER ? OK : rc;
    if (signalled || w->flight_count)
        return OK;
    if (enough(w, 0))
        w->ended = reason_to_end(w);
    else if (!queue_count(w->queue) && (rc = decide(w, e)) != OK)
        return rc;
    if (!w->ended)
        return OK;
    w->home_next = 0; /* what was done must be there at the end */
    if ((rc = evaluation_home_check(w, signalled, e)) != OK)
        w->ended = NULL;
    else
        lookout_rest(w->post);
    return rc == EVALUATION_RECORD_LATER ? OK : rc;
}

void evaluation_watch_post_end(struct evaluation_watch *w, const char *reason)
{
    if (!w->end_posted)
        evaluation_record_post(w, HOOK_END, NULL, reason);
    w->end_posted = 1;
}

double evaluation_watch_due(const struct evaluation_watch *w)
{
    double due = INFINITY, interval = interval_left(w), retry = w->retry_at - clock_monotonic();

    if (w->ended)
        return INFINITY;
    due = fmin(due, watch_report_due(w));
    if (w->retry_at <= 0)
        due = fmin(due, w->home_next - clock_monotonic());
    if (w->retry_at > 0 && retry < due)
        due = retry;
    else if (w->retry_at <= 0 && w->pending_count)
        due = 0;
    if (queue_count(w->queue) && interval > 0 && interval < due)
        due = interval;
    return due > 0 ? due : 0;
}
