#include "evaluator/evaluation_watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "evaluator/evaluation_lock.h"
#include "evaluator/file_stamp.h"
#include "evaluator/pin.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAID_MAX = 1600 };

static void say(const struct evaluation_watch *w, const char *level, const char *fields, const char *format,
                va_list args)
{
    struct buffer more = BUFFER_EMPTY;
    char text[SAID_MAX];

    vsnprintf(text, sizeof text, format, args);
    if (w->settings.name && w->log->json) {
        buffer_append_text(&more, "\"watch\":");
        json_text(&more, w->settings.name);
        buffer_format(&more, "%s%s", fields ? "," : "", fields ? fields : "");
        fields = buffer_text(&more);
    }
    if (w->settings.name)
        log_event(w->log, level, fields, "%s: %s", w->settings.name, text);
    else
        log_event(w->log, level, fields, "%s", text);
    buffer_release(&more);
}

void evaluation_watch_say(const struct evaluation_watch *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(w, "info", NULL, format, args);
    va_end(args);
}

__attribute__((format(printf, 3, 4)))
static void warn(const struct evaluation_watch *w, const char *level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(w, level, NULL, format, args);
    va_end(args);
}

/* Of one checkpoint: what became of it, for programs, and the sentence for people. */
__attribute__((format(printf, 4, 5)))
static void say_of(const struct evaluation_watch *w, const struct ledger_record *r, const char *level,
                   const char *format, ...)
{
    struct buffer fields = BUFFER_EMPTY;
    va_list args;

    if (w->log->json) {
        buffer_format(&fields, "\"step\":%" PRId64 ",\"checkpoint\":", r->step);
        json_text(&fields, r->checkpoint);
        if (r->status == LEDGER_DONE && r->metrics.count) {
            buffer_append_text(&fields, ",\"metrics\":");
            evaluation_metrics_json(&r->metrics, &fields);
        }
    }
    va_start(args, format);
    say(w, level, buffer_text(&fields), format, args);
    va_end(args);
    buffer_release(&fields);
}

/* ---- what the watcher tells -------------------------------------------------------------------------------------- */

static void on_found(void *context, const struct queue_item *item)
{
    struct evaluation_watch *w = context;

    w->last_news = clock_monotonic();
    if (item->written > w->newest_written)
        w->newest_written = item->written;
    if (queue_full(&w->queue) && !w->full_said) {
        w->full_said = 1;
        evaluation_watch_say(w, "%zu checkpoints wait %s, which is the limit; later ones are opened as places "
                             "become free, and are lost if they are deleted before", w->queue.count,
                             w->settings.pin ? "pinned" : "with their files open");
    }
}

static struct ledger_record *pend(struct evaluation_watch *w, const char *name, int64_t step)
{
    struct ledger_record *r;

    if (w->pending_count == w->pending_capacity) {
        size_t capacity = w->pending_capacity ? w->pending_capacity * 2 : 8;
        struct ledger_record *grown = realloc(w->pending, capacity * sizeof *grown);

        if (!grown) {
            error_set(&w->pending_error, ERR_NOMEM, "no memory to record what became of %s", name);
            return NULL;
        }
        w->pending = grown;
        w->pending_capacity = capacity;
    }
    r = memset(&w->pending[w->pending_count++], 0, sizeof *r);
    r->step = step;
    snprintf(r->checkpoint, sizeof r->checkpoint, "%s", name);
    r->started = r->wall_time = clock_wall();
    return r;
}

static void on_failed(void *context, const struct watcher_failure *failure)
{
    struct evaluation_watch *w = context;
    struct ledger_record *r = pend(w, failure->name, failure->step);

    if (!r)
        return;
    r->status = LEDGER_FAILED;
    r->has_digest = failure->has_digest;
    r->digest = failure->digest;
    snprintf(r->reason, sizeof r->reason, "%s", failure->reason);
    say_of(w, r, "error", "%s: failed: not whole, and nothing changed any more: %s", failure->name, failure->reason);
}

static void on_gone(void *context, const char *name, int64_t step)
{
    struct evaluation_watch *w = context;
    struct ledger_record *r = pend(w, name, step);

    if (!r)
        return;
    r->status = LEDGER_GONE;
    snprintf(r->reason, sizeof r->reason, "deleted before it could be opened whole");
    say_of(w, r, "warning", "%s: gone: %s", name, r->reason);
}

static void on_directory(void *context, int there)
{
    struct evaluation_watch *w = context;
    const char *directory = w->settings.checkpoint_directory;

    if (there)
        evaluation_watch_say(w, "watching %s", directory);
    else if (w->first_look <= 0)
        evaluation_watch_say(w, "%s does not exist yet; waiting for it", directory);
    else
        evaluation_watch_say(w, "%s is gone; waiting for it to come back", directory);
}

static void on_trouble(void *context, const char *sentence)
{
    warn(context, "warning", "%s", sentence);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int note_line(struct evaluation_watch *w, const struct ledger_record *r, struct error *e)
{
    w->last_step = r->step;
    return evaluation_series_add(&w->series, w->settings.tags, r, e);
}

static int recall(void *context, const struct ledger_record *r, struct error *e)
{
    struct evaluation_watch *w = context;
    int rc = note_line(w, r, e);

    if (rc != OK)
        return rc;
    if (!r->has_digest || r->status == LEDGER_GONE || (r->status == LEDGER_FAILED && w->settings.retry_failed))
        return OK;
    if (r->digest_after && queue_remember(&w->queue, r->checkpoint, r->digest_after, e) != OK)
        return ERR_NOMEM;
    return queue_remember(&w->queue, r->checkpoint, r->digest, e);
}

static int take_lock(struct evaluation_watch *w, const char *path, struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    const char *tags = s->tags == evaluation_tags_plain() ? "plain" : s->tags->preset ? s->tags->preset : "default";
    const struct checkpoint_source *source = &s->watcher.source;
    const char *pattern = source->has_pattern ? source->pattern.text : NULL;
    enum evaluation_lock_state was;
    struct evaluation_lock before;
    int rc = evaluation_lock_take(path, s->checkpoint_directory, pattern, tags, s->take_over, &w->lock, &before, &was,
                                  e);

    if (rc == OK && (was == LOCK_DEAD || was == LOCK_ELSEWHERE))
        evaluation_watch_say(w, "taking over from process %" PRId64 " on host %s, which %s", before.process.pid,
                             before.process.host, was == LOCK_DEAD ? "died" : "is taken for gone (--take-over)");
    return rc;
}

static int open_keeper(struct evaluation_watch *w, struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    const struct evaluation_best_options options = { s->checkpoint_directory, s->eval_directory, s->keep_best,
                                                     s->patience };

    return s->keep_best || s->patience ? evaluation_best_open(&w->keeper, &options, e) : OK;
}

static void say_of_best(const struct evaluation_watch *w, int rc, const struct error *trouble)
{
    if (rc == EVALUATION_BEST_STOP)
        evaluation_watch_say(w, "%s; %s/stop.json asks the training to end", trouble->message,
                             w->settings.checkpoint_directory);
    else if (rc != OK)
        evaluation_watch_say(w, "%s", trouble->message);
}

/* A pin of an earlier process: recorded already, or still to be evaluated. */
static int recall_pin(void *context, const struct pin *pin, const char *path, uint64_t bytes, struct error *e)
{
    struct evaluation_watch *w = context;
    struct queue_item item = { .step = pin->step, .digest = pin->digest, .kind = pin->kind, .pinned_bytes = bytes,
                               .found = clock_wall() };
    struct stat st;
    char witness[PATH_MAX];
    int rc;

    if (queue_knows(&w->queue, pin->name, pin->digest)) {
        pin_remove(path);
        return OK;
    }
    if (queue_full(&w->queue))
        return OK; /* the next start, or the directory itself, has it */
    item.written = item.modified = item.found;
    if (checkpoint_witness(pin->kind, path, witness, sizeof witness, NULL) == OK && stat(witness, &st) == 0)
        item.written = item.modified = file_stamp_modified(&st);
    item.name = strdup(pin->name);
    item.pinned = strdup(path);
    rc = item.name && item.pinned ? queue_offer(&w->queue, &item, e)
                                  : error_set(e, ERR_NOMEM, "no memory for the pinned %s", pin->name);
    if (rc != QUEUE_ADDED)
        queue_item_release(&item);
    return rc < 0 ? rc : OK;
}

static int open_records(struct evaluation_watch *w, struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    const struct ledger_summary *summary;
    char path[PATH_MAX];
    struct error trouble = { 0 };
    int rc;

    if ((rc = file_make_directories(s->eval_directory, e)) != OK ||
        (rc = file_join(path, sizeof path, s->eval_directory, "evaluator.lock", e)) != OK ||
        (rc = take_lock(w, path, e)) != OK)
        return rc;
    if ((rc = file_join(path, sizeof path, s->eval_directory, "evaluations.jsonl", e)) != OK ||
        (rc = ledger_open(&w->ledger, NULL, path, &s->best, recall, w, e)) != OK)
        return rc;
    summary = ledger_summary(w->ledger);
    if (summary->cut_bytes)
        evaluation_watch_say(w, "%s: dropped a cut last line of %zu bytes", path, summary->cut_bytes);
    if (summary->odd_lines)
        evaluation_watch_say(w, "%s: passed over %zu lines that are not of a ledger", path, summary->odd_lines);
    if (summary->highest_step >= 0)
        w->position = 1; /* the one before was evaluated by an earlier process */
    if ((rc = evaluation_log_open(&w->points, s->eval_directory, s->tags, summary->last_run, summary->last_step,
                                  e)) != OK || (rc = open_keeper(w, e)) != OK)
        return rc;
    say_of_best(w, evaluation_best_resume(w->keeper, summary, &trouble), &trouble);
    return OK;
}

static void note_training(struct evaluation_watch *w)
{
    struct training_state state;
    int known = training_state_read(w->settings.checkpoint_directory, &state, NULL) == 1;
    int failed = known && !strcmp(state.state, "failed");

    w->finished = ending_training_finished(&w->training, known ? &state : NULL, clock_monotonic());
    if (failed && !w->failed_training_said && !w->settings.ending.forever)
        evaluation_watch_say(w, "training.json says that the training failed at step %" PRId64 "; waiting for its "
                             "restart", state.global_step);
    w->failed_training_said = failed;
}

int evaluation_watch_open(struct evaluation_watch **out, const struct evaluation_watch_settings *settings,
                          struct log *log, struct error *e)
{
    struct evaluation_watch *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w)
        return error_set(e, ERR_NOMEM, "no memory to watch %s", settings->checkpoint_directory);
    w->settings = *settings;
    w->settings.watcher.pin_directory = settings->pin ? settings->eval_directory : NULL;
    w->log = log;
    w->lock = -1;
    w->last_step = -1;
    w->events = (struct watcher_events){ w, on_found, on_failed, on_gone, on_directory, on_trouble };
    w->last_news = clock_monotonic();
    if ((rc = queue_init(&w->queue, settings->queue_limit, e)) != OK || (rc = open_records(w, e)) != OK ||
        (rc = pin_recover(settings->eval_directory, recall_pin, w, e)) != OK ||
        (rc = watcher_open(&w->watcher, settings->checkpoint_directory, &w->settings.watcher, &w->queue, &w->events,
                           e)) != OK || (rc = watcher_look(w->watcher, e)) != OK) {
        evaluation_watch_close(w);
        return rc;
    }
    w->first_look = clock_wall();
    note_training(w);
    *out = w;
    return OK;
}

static void drop(struct evaluation_watch *w, struct evaluation_flight *flight)
{
    const int large = flight->evaluation.detail != NULL;
    size_t i = 0;

    while (w->flights[i] != flight)
        i++;
    memmove(w->flights + i, w->flights + i + 1, (--w->flight_count - i) * sizeof *w->flights);
    evaluation_best_forget(w->keeper, flight->item.name, flight->item.digest);
    evaluation_flight_free(flight);
    if (large)
        malloc_trim(0); /* what pictures and tables took: else the heap creeps up, by holes, for hundreds of them */
}

void evaluation_watch_close(struct evaluation_watch *w)
{
    if (!w)
        return;
    while (w->flight_count)
        drop(w, w->flights[0]);
    free(w->flights);
    free(w->pending);
    watcher_close(w->watcher);
    evaluation_log_close(w->points, NULL);
    evaluation_best_close(w->keeper);
    ledger_close(w->ledger);
    evaluation_series_release(&w->series);
    queue_release(&w->queue);
    evaluation_lock_release(w->lock, w->ended ? w->ended : "stopped");
    free(w);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

enum { RECORD_LATER = 3 };

/* A disk that is full or failing: says so once and tries until it works or a signal ends it. */
static int try_later(struct evaluation_watch *w, const char *what, const char *name, int signalled,
                     const struct error *why, struct error *e)
{
    if (w->retry_at <= 0)
        warn(w, "error", "%s: %s: %s; trying again every %g s", name, what, why->message, w->settings.retry_seconds);
    w->retry_at = clock_monotonic() + w->settings.retry_seconds;
    if (!signalled)
        return RECORD_LATER;
    error_set(e, why->code, "%s is not recorded and will be evaluated again: %.300s", name, why->message);
    return WATCH_GIVEN_UP;
}

static int append(struct evaluation_watch *w, const struct ledger_record *r, int signalled, struct error *e)
{
    struct buffer line = BUFFER_EMPTY;
    struct error why = { 0 };
    size_t name_end;
    int rc;

    if (ledger_append(w->ledger, r, &why) != OK)
        return try_later(w, "not recorded", r->checkpoint, signalled, &why, e);
    if (w->retry_at > 0)
        evaluation_watch_say(w, "%s: recorded now", r->checkpoint);
    w->retry_at = 0;
    if ((rc = note_line(w, r, e)) != OK)
        return rc;
    if (w->settings.json) {
        if (w->settings.name) { /* which of several: before the rest of the object */
            buffer_append_text(&line, "{\"watch\":");
            json_text(&line, w->settings.name);
            buffer_append_text(&line, ",");
        }
        name_end = line.length;
        ledger_format(r, &line);
        if (name_end)
            memmove(line.data + name_end, line.data + name_end + 1, line.length-- - name_end);
        fwrite(buffer_text(&line), 1, line.length, stdout);
        fflush(stdout);
        buffer_release(&line);
    }
    return OK;
}

static int stop_if_strict(const struct evaluation_watch *w, const struct ledger_record *r, struct error *e)
{
    if (!w->settings.strict || r->status == LEDGER_DONE)
        return OK;
    error_set(e, ERR_CORRUPT, "%s: %.300s; ending because of --strict", r->checkpoint, r->reason);
    return WATCH_STOPPED;
}

static int record_pending(struct evaluation_watch *w, int signalled, struct error *e)
{
    if (w->pending_error.code) {
        if (e)
            *e = w->pending_error;
        return w->pending_error.code;
    }
    while (w->pending_count) {
        struct ledger_record first = w->pending[0];
        int rc = append(w, &first, signalled, e);

        if (rc != OK)
            return rc;
        memmove(w->pending, w->pending + 1, --w->pending_count * sizeof *w->pending);
        if ((rc = stop_if_strict(w, &first, e)) != OK)
            return rc;
    }
    return OK;
}

/* Puts best_NAME, the best value with this evaluation in, behind the metric NAME. */
static int add_best(struct evaluation_watch *w, struct ledger_record *r, struct error *e)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    const struct evaluation_metric *metric = evaluation_metrics_find(&r->metrics, s->rule.metric);
    double best = s->has_best ? s->best_value : NAN;
    char name[EVALUATION_NAME_MAX + sizeof EVALUATION_BEST];

    if (!metric) {
        if (!w->best_missing_said && r->metrics.count)
            evaluation_watch_say(w, "%s: no metric is named '%s', so none is best; --best-metric NAME names another",
                                 r->checkpoint, s->rule.metric);
        w->best_missing_said = 1;
        return OK;
    }
    if (r->status == LEDGER_DONE && ledger_improves(s, metric->value))
        best = metric->value;
    snprintf(name, sizeof name, EVALUATION_BEST "%s", metric->name);
    if (isnan(best) || strlen(name) >= EVALUATION_NAME_MAX || evaluation_metrics_find(&r->metrics, name))
        return OK;
    return evaluation_metrics_insert(&r->metrics, (size_t)(metric - r->metrics.items) + 1, name, best, e);
}

static int prepare(struct evaluation_watch *w, struct evaluation_flight *f, struct error *e)
{
    struct ledger_record *r = &f->record;
    const struct evaluation_metric *loss = evaluation_metrics_find(&r->metrics, EVALUATION_LOSS);
    int rc = OK;

    f->state = FLIGHT_PREPARED;
    if (!r->has_metrics)
        return OK;
    if (loss && isnan(loss->value)) {
        r->status = LEDGER_FAILED;
        snprintf(r->reason, sizeof r->reason, "the loss is NaN");
    }
    for (size_t i = 0; i < r->metrics.count; i++)
        if (isnan(r->metrics.items[i].value) && loss != &r->metrics.items[i])
            evaluation_watch_say(w, "%s: %s is NaN", r->checkpoint, r->metrics.items[i].name);
    if ((rc = add_best(w, r, e)) != OK)
        return rc;
    r->run = evaluation_log_run(w->points, r->step);
    if (r->run && r->run != ledger_summary(w->ledger)->last_run) {
        char directory[PATH_MAX];

        if (evaluation_log_directory(w->settings.eval_directory, r->run, directory, sizeof directory, NULL) == OK)
            evaluation_watch_say(w, "%s: step %" PRId64 " is lower than one that was evaluated before: its points go "
                                 "to %s", r->checkpoint, r->step, directory);
    }
    return OK;
}

/* As late as that, since a trainer that was started beside us has written training.json by its first checkpoint. */
static void describe(struct evaluation_watch *w)
{
    struct training_state training;
    int known = training_state_read(w->settings.checkpoint_directory, &training, NULL) == 1;

    evaluation_log_describe(w->points, known ? &training : NULL, w->settings.model, w->settings.data);
    w->described = 1;
}

static int write_points(struct evaluation_watch *w, struct evaluation_flight *f, int signalled, struct error *e)
{
    const struct ledger_record *r = &f->record;
    struct evaluation_point p = { r->step, r->point_time > 0 ? r->point_time : r->wall_time, &r->metrics,
                                  f->evaluation.detail };
    struct error why = { 0 };

    if (r->has_metrics && w->settings.session && !w->described)
        describe(w);
    if (r->has_metrics && evaluation_log_point(w->points, &p, &why) != OK)
        return try_later(w, "points not written", r->checkpoint, signalled, &why, e);
    f->state = FLIGHT_WRITTEN;
    return OK;
}

static void say_result(struct evaluation_watch *w, const struct ledger_record *r)
{
    const char *program = w->log->program;
    char text[SAID_MAX - 400];

    if (r->status != LEDGER_DONE)
        say_of(w, r, r->status == LEDGER_GONE ? "warning" : "error", "%s: %s: %s", r->checkpoint,
               r->status == LEDGER_GONE ? "gone" : "failed", r->reason);
    if (!r->has_metrics)
        return;
    evaluation_metrics_text(&r->metrics, text, sizeof text);
    if (!w->log->json)
        w->log->program = NULL; /* a line people parse: as it always was */
    say_of(w, r, "info", "step: %" PRId64 ", %s: %s", r->step, r->checkpoint, text);
    w->log->program = program;
}

int evaluation_watch_look(struct evaluation_watch *w, struct error *e)
{
    return watcher_should_look(w->watcher) ? watcher_look(w->watcher, e) : OK;
}

/* All flights that have landed, up to the first that has not: so points and lines come in the order of the steps.
 * Looks between one sync and the next, since a sync may take long and a checkpoint live shortly. */
static int record_flights(struct evaluation_watch *w, int signalled, struct error *e)
{
    while (w->flight_count && w->flights[0]->state != FLIGHT_RUNNING) {
        struct evaluation_flight *f = w->flights[0];
        struct error trouble = { 0 };
        int rc = OK;

        if ((f->state == FLIGHT_LANDED && (rc = prepare(w, f, e)) != OK) ||
            (f->state == FLIGHT_PREPARED && (rc = write_points(w, f, signalled, e)) != OK) ||
            (rc = evaluation_watch_look(w, e)) != OK || (rc = append(w, &f->record, signalled, e)) != OK)
            return rc;
        log_progress_end(w->log);
        say_result(w, &f->record);
        say_of_best(w, evaluation_best_after(w->keeper, &f->record, ledger_summary(w->ledger), &trouble), &trouble);
        w->evaluations++;
        w->last_news = clock_monotonic();
        rc = stop_if_strict(w, &f->record, e);
        if (f->item.pinned)
            pin_remove(f->item.pinned);
        drop(w, f);
        if (rc != OK || (rc = evaluation_watch_look(w, e)) != OK)
            return rc;
    }
    return OK;
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

    if (item->step < s->from)
        return "--from";
    if (selecting && item->found <= w->first_look && item->step < highest)
        return s->latest_only ? "--latest-only" : "--every";
    if (s->latest_only && w->queue.count)
        return "--latest-only";
    if (s->every > 1 && w->position++ % s->every)
        return "--every";
    return NULL;
}

static int take_off(struct evaluation_watch *w, const struct queue_item *item, struct evaluation_flight **out,
                    struct error *e)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    size_t i = w->flight_count, capacity = w->flight_capacity ? w->flight_capacity * 2 : 4;
    struct evaluation_flight *f, **grown = w->flights;
    int rc;

    if (w->flight_count == w->flight_capacity) {
        if (!(grown = realloc(w->flights, capacity * sizeof(void *))))
            return error_set(e, ERR_NOMEM, "no memory to evaluate %s", item->name);
        w->flights = grown;
        w->flight_capacity = capacity;
    }
    if ((rc = evaluation_flight_new(&f, item, w->settings.checkpoint_directory, w->settings.eval_directory,
                                    (int64_t)(ledger_lines(s) + w->flight_count), e)) != OK)
        return rc;
    w->last_start = f->begin;
    evaluation_best_before(w->keeper, f->directory, item->name, item->digest);
    while (i > 0 && w->flights[i - 1]->item.step > item->step)
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

    while (queue_take(&w->queue, &item)) {
        if (!(why = skip(w, &item))) {
            if ((rc = take_off(w, &item, out, e)) < 0)
                queue_item_release(&item);
            return rc;
        }
        w->skipped++;
        if (item.pinned)
            pin_remove(item.pinned);
        evaluation_watch_say(w, "%s: skipped (%s)", item.name, why);
        queue_item_release(&item);
    }
    return 0;
}

void evaluation_watch_progress(struct evaluation_watch *w, const struct evaluation_flight *flight,
                               const struct runner_progress *progress)
{
    const char *weights = progress->weights;

    if (weights && (!w->weights_said || strcmp(w->weights_said, weights))) {
        w->weights_said = weights;
        evaluation_watch_say(w, "%s: evaluated with the %s", flight->item.name,
                             !strcmp(weights, "mixed") ? "moving averages of those variables that have one" :
                             !strcmp(weights, "variables") ? "variables themselves" :
                             "moving averages of the variables");
    }
    if (w->log->terminal)
        log_progress(w->log, "%s: %.0f %%, %zu queued", flight->item.name, progress->share * 100, w->queue.count);
}

void evaluation_watch_landed(struct evaluation_watch *w, struct evaluation_flight *f, enum runner_state state,
                             struct evaluation *v, const struct error *why)
{
    uint64_t results;

    if (state == RUNNER_STOPPED) {
        drop(w, f);
        return;
    }
    if (evaluation_flight_results(f, &results) && queue_remember(&w->queue, f->item.name, results, NULL) == OK)
        f->record.digest_after = results;
    evaluation_flight_land(f, state, v, why);
    if (w->settings.checkpoint_time)
        f->record.point_time = f->item.modified;
}

static const char *reason_to_end(struct evaluation_watch *w)
{
    const struct ending_rules *rules = &w->settings.ending;
    struct ending_facts facts = { .idle_seconds = clock_monotonic() - w->last_news, .evaluations = w->evaluations,
                                  .highest_step = ledger_summary(w->ledger)->highest_step };

    note_training(w);
    facts.finished = w->finished;
    facts.done_file_there = rules->done_file && access(rules->done_file, F_OK) == 0;
    facts.process_gone = rules->pid && !process_lives(rules->pid, -1);
    return ending_reason(rules, &facts);
}

/* Seconds until the next evaluation may start. */
static double interval_left(const struct evaluation_watch *w)
{
    double left = w->last_start + w->settings.min_interval - clock_monotonic();

    return w->settings.min_interval > 0 && w->last_start > 0 && left > 0 ? left : 0;
}

static int enough(const struct evaluation_watch *w, size_t flights)
{
    int64_t most = w->settings.ending.max_evaluations;

    return most && w->evaluations + (int64_t)flights >= most;
}

int evaluation_watch_ready(const struct evaluation_watch *w, size_t window)
{
    return w->queue.count && !w->ended && !w->pending_count && w->retry_at <= 0 && w->flight_count < window &&
           interval_left(w) <= 0 && !enough(w, w->flight_count);
}

/* Nothing waits and nothing is evaluated: has the work come to its end? */
static int decide(struct evaluation_watch *w, struct error *e)
{
    const char *reason = reason_to_end(w);
    int rc;

    if (reason && !w->draining) {
        /* The condition held before this listing, so whatever was there when it came true is in it. */
        if ((rc = watcher_look(w->watcher, e)) != OK)
            return rc;
        watcher_set_closed(w->watcher, 1);
        w->draining = reason;
    } else if (!reason && w->draining) {
        watcher_set_closed(w->watcher, 0);
        w->draining = NULL;
    }
    if (w->draining && !w->queue.count && !w->pending_count && !watcher_undecided(w->watcher))
        w->ended = w->draining;
    return OK;
}

int evaluation_watch_tick(struct evaluation_watch *w, int signalled, struct error *e)
{
    int rc;

    if (w->ended)
        return OK;
    if ((rc = evaluation_watch_look(w, e)) != OK)
        return rc;
    if (w->retry_at > clock_monotonic() && !signalled)
        return OK;
    if ((rc = record_pending(w, signalled, e)) != OK || (rc = record_flights(w, signalled, e)) != OK)
        return rc == RECORD_LATER ? OK : rc;
    if (signalled || w->flight_count)
        return OK;
    if (enough(w, 0)) {
        w->ended = reason_to_end(w);
        return OK;
    }
    return w->queue.count ? OK : decide(w, e);
}

double evaluation_watch_look_due(const struct evaluation_watch *w)
{
    return watcher_due(w->watcher);
}

double evaluation_watch_due(const struct evaluation_watch *w)
{
    double due = watcher_due(w->watcher), interval = interval_left(w), retry = w->retry_at - clock_monotonic();

    if (w->ended)
        return INFINITY;
    if (w->retry_at > 0 && retry < due)
        due = retry;
    else if (w->retry_at <= 0 && w->pending_count)
        due = 0;
    if (w->queue.count && interval > 0 && interval < due)
        due = interval;
    return due > 0 ? due : 0;
}

int evaluation_watch_descriptor(const struct evaluation_watch *w)
{
    return w->ended ? -1 : watcher_descriptor(w->watcher);
}

void evaluation_watch_status(const struct evaluation_watch *w, char *out, size_t size)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    char best[320] = "none yet", newest[64] = "no checkpoint yet", pinned[48] = "";

    if (s->has_best)
        snprintf(best, sizeof best, "%.3f (%s)", s->best_value, s->best_checkpoint);
    if (w->newest_written > 0)
        snprintf(newest, sizeof newest, "newest %.0f s old", fmax(0, clock_wall() - w->newest_written));
    if (w->settings.pin)
        snprintf(pinned, sizeof pinned, " (%.1f MB pinned)", (double)queue_pinned_bytes(&w->queue) / 1e6);
    snprintf(out, size, "%s: %zu done, %zu queued%s, %zu not whole, %zu failed, %zu gone, best %s, %s",
             w->settings.checkpoint_directory, s->done, w->queue.count + w->flight_count, pinned,
             watcher_undecided(w->watcher), s->failed, s->gone, best, newest);
}
