#include "evaluator/evaluation_record.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "evaluator/keep/pin.h"
#include "evaluator/watch_log.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int evaluation_record_note(struct evaluation_watch *w, const struct ledger_record *r, struct error *e)
{
    int rc = outcomes_note(&w->outcomes, r, e);

    w->last_step = r->checkpoint.step;
    if (w->newest_written <= 0)
        w->newest_step = r->checkpoint.step;
    return rc == OK ? evaluation_series_add(&w->series, w->settings.tags, r, e) : rc;
}

void evaluation_record_best(const struct evaluation_watch *w, int rc, const struct error *trouble)
{
    if (rc == EVALUATION_BEST_STOP)
        watch_log_say(w, "%s; %s/stop.json asks the training to end", trouble->message,
                      w->settings.checkpoint_directory);
    else if (rc != OK)
        watch_log_say(w, "%s", trouble->message);
}

/* A disk that is full or failing: says so once and tries until it works or a signal ends it. */
static int try_later(struct evaluation_watch *w, const char *what, const char *name, int signalled,
                     const struct error *why, struct error *e)
{
    if (w->retry_at <= 0)
        watch_log_warn(w, "error", "%s: %s: %s; trying again every %g s", name, what, why->message,
                       w->settings.retry_seconds);
    w->retry_at = clock_monotonic() + w->settings.retry_seconds;
    if (!signalled)
        return EVALUATION_RECORD_LATER;
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
        return try_later(w, "not recorded", r->checkpoint.name, signalled, &why, e);
    if (w->retry_at > 0)
        watch_log_say(w, "%s: recorded now", r->checkpoint.name);
    w->retry_at = 0;
    if ((rc = evaluation_record_note(w, r, e)) != OK)
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

/* What a command of --on-... gets as the checkpoint's path. */
static void path_of(const struct evaluation_watch *w, const char *name, int best, char out[PATH_MAX])
{
    const struct ledger_summary *s = ledger_summary(w->ledger);

    if (!(best && evaluation_best_kept(w->keeper, s, out, PATH_MAX)) &&
        file_join(out, PATH_MAX, w->settings.checkpoint_directory, name, NULL) != OK)
        *out = '\0';
}

void evaluation_record_post(struct evaluation_watch *w, enum hook_event event, const struct ledger_record *r,
                            const char *reason)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    const int best = event != HOOK_FAILURE && s->has_best;
    struct hook_values values = { .watch = w->settings.name, .eval_directory = w->settings.eval_directory,
                                  .checkpoint_directory = w->settings.checkpoint_directory, .reason = reason,
                                  .step = -1, .value = NAN, .done = s->done,
                                  .failed = outcomes_count(&w->outcomes, LEDGER_FAILED),
                                  .gone = outcomes_count(&w->outcomes, LEDGER_GONE) };
    char path[PATH_MAX] = "";

    if (!hooks_wanted(w->settings.hooks, event))
        return;
    if (best || r) {
        values.name = best ? s->best.name : r->checkpoint.name;
        values.step = best ? s->best.step : r->checkpoint.step;
        path_of(w, values.name, best, path);
        values.checkpoint = path;
    }
    if (best) {
        values.metric = s->rule.metric;
        values.value = s->best_value;
    }
    hooks_post(w->settings.hooks, event, &values);
}

/* After its line is in the ledger, and EVAL/best/ is what follows from it. */
static void post_outcome(struct evaluation_watch *w, const struct ledger_record *r)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);

    if (r->status != LEDGER_DONE)
        evaluation_record_post(w, HOOK_FAILURE, r, r->reason);
    else if (s->has_best && !s->since_best && checkpoint_identity_same(&s->best, &r->checkpoint))
        evaluation_record_post(w, HOOK_BEST, r, NULL);
}

static int stop_if_strict(const struct evaluation_watch *w, const struct ledger_record *r, struct error *e)
{
    if (!w->settings.strict || r->status == LEDGER_DONE)
        return OK;
    error_set(e, ERR_CORRUPT, "%s: %.300s; ending because of --strict", r->checkpoint.name, r->reason);
    return WATCH_STOPPED;
}

int evaluation_record_pending(struct evaluation_watch *w, int signalled, struct error *e)
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
        post_outcome(w, &first);
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
            watch_log_say(w, "%s: no metric is named '%s', so no checkpoint is the best; name another with "
                          "--best-metric", r->checkpoint.name, s->rule.metric);
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
            watch_log_say(w, "%s: %s is NaN", r->checkpoint.name, r->metrics.items[i].name);
    if ((rc = add_best(w, r, e)) != OK)
        return rc;
    r->run = evaluation_log_run(w->points, r->checkpoint.step);
    if (r->run && r->run != ledger_summary(w->ledger)->last_run) {
        char directory[PATH_MAX];

        if (evaluation_log_directory(w->settings.eval_directory, r->run, directory, sizeof directory, NULL) == OK)
            watch_log_say(w, "%s: step %" PRId64 " is lower than one that was evaluated before: its points go to %s",
                          r->checkpoint.name, r->checkpoint.step, directory);
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
    struct evaluation_point p = { r->checkpoint.step, r->point_time > 0 ? r->point_time : r->wall_time, &r->metrics,
                                  f->evaluation.detail };
    struct error why = { 0 };

    if (r->has_metrics && w->settings.session && !w->described)
        describe(w);
    if (r->has_metrics && evaluation_log_point(w->points, &p, &why) != OK)
        return try_later(w, "points not written", r->checkpoint.name, signalled, &why, e);
    f->state = FLIGHT_WRITTEN;
    return OK;
}

static void say_result(struct evaluation_watch *w, const struct ledger_record *r)
{
    const char *program = w->log->program;
    char text[WATCH_LOG_MAX - 400];

    if (r->status != LEDGER_DONE)
        watch_log_of(w, r, r->status == LEDGER_GONE ? "warning" : "error", "%s: %s: %s", r->checkpoint.name,
                     r->status == LEDGER_GONE ? "gone" : "failed", r->reason);
    if (!r->has_metrics)
        return;
    evaluation_metrics_text(&r->metrics, text, sizeof text);
    if (!w->log->json)
        w->log->program = NULL; /* a line people parse: as it always was */
    watch_log_of(w, r, "info", "step: %" PRId64 ", %s: %s", r->checkpoint.step, r->checkpoint.name, text);
    w->log->program = program;
}

/* All flights that have landed, up to the first that has not: so points and lines come in the order of the steps. */
int evaluation_record_flights(struct evaluation_watch *w, int signalled, struct error *e)
{
    while (w->flight_count && w->flights[0]->state != FLIGHT_RUNNING) {
        struct evaluation_flight *f = w->flights[0];
        struct error trouble = { 0 };
        int rc = OK;

        if ((f->state == FLIGHT_LANDED && (rc = prepare(w, f, e)) != OK) ||
            (f->state == FLIGHT_PREPARED && (rc = write_points(w, f, signalled, e)) != OK) ||
            (rc = append(w, &f->record, signalled, e)) != OK)
            return rc;
        log_progress_end(w->log);
        say_result(w, &f->record);
        rc = evaluation_best_after(w->keeper, &f->record, ledger_summary(w->ledger), &trouble);
        evaluation_record_best(w, rc, &trouble);
        post_outcome(w, &f->record);
        w->evaluations++;
        w->last_news = clock_monotonic();
        rc = stop_if_strict(w, &f->record, e);
        if (f->item.pinned)
            pin_remove(f->item.pinned);
        evaluation_watch_drop(w, f);
        if (rc != OK)
            return rc;
    }
    return OK;
}
