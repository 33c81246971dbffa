#include "evaluator/evaluation_record.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "evaluator/evaluation_settings.h"
#include "evaluator/record/evaluation_best.h"
#include "evaluator/record/evaluation_lock.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/evaluation_replay.h"
#include "evaluator/record/evaluation_work.h"
#include "evaluator/record/ledger.h"
#include "evaluator/score/command_stamp.h"
#include "evaluator/watch_log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- evaluation home --------------------------------------------------------------------------------------------- */

/*
 * Opens the eval directory at the start and restores it while the evaluator works. If EVAL is
 * deleted, moved or replaced, it is made again: the ledger in full, because it is open; points from the ledger, those
 * of the open event file with their pictures; EVAL/best from the checkpoints that still exist; and new pins. Only this
 * module makes the event file again, after the ledger, even if nothing else is gone. One thread.
 */

enum evaluation_home {
    HOME_THERE,
    HOME_GONE,    /* and can be made again */
    HOME_OTHER,   /* the ledger's path leads to somebody else's file, as e says */
    HOME_UNKNOWN, /* it cannot be examined; e says why */
};

static int take_lock(const struct evaluation_watch_settings *s, const struct watch_log *says, const char *path,
                     int take_over, struct evaluation_lock_held *held, struct error *e)
{
    const char *tags = s->tags == evaluation_tags_plain() ? "plain" : s->tags->preset ? s->tags->preset : "default";
    const struct evaluation_lock_about about = { s->checkpoint_directory, s->source.pattern,
                                                 s->source.step_from,     tags,
                                                 s->source.step_scale,    s->source.step_offset };
    enum evaluation_lock_state was;
    struct evaluation_lock before;
    int rc = evaluation_lock_take(path, &about, take_over, held, &before, &was, e);

    if (rc == OK && (was == LOCK_DEAD || was == LOCK_ELSEWHERE))
        watch_log_say(says, "taking over from process %" PRId64 " on host %s, which %s", before.process.pid,
                      before.process.host, was == LOCK_DEAD ? "died" : "is presumed gone (--take-over)");
    return rc;
}

/* Makes EVAL. */
static int lock_path(const struct evaluation_watch_settings *s, char path[PATH_MAX], struct error *e)
{
    int rc = file_make_directories(s->eval_directory, e);

    return rc == OK ? file_join(path, PATH_MAX, s->eval_directory, EVALUATION_LOCK_FILE, e) : rc;
}

/* Makes EVAL and takes its lock. On OK *held is yours until evaluation_home_leave(). */
static int evaluation_home_take(const struct evaluation_watch_settings *s, const struct watch_log *says,
                                struct evaluation_lock_held *held, struct error *e)
{
    char path[PATH_MAX];
    int rc;

    if ((rc = lock_path(s, path, e)) != OK || (rc = take_lock(s, says, path, s->take_over, held, e)) != OK)
        return rc;
    return evaluation_work_check(s->eval_directory, e);
}

static void evaluation_home_leave(const struct evaluation_watch_settings *s, const struct evaluation_lock_held *held,
                                  const char *why)
{
    char path[PATH_MAX];

    if (file_join(path, sizeof path, s->eval_directory, EVALUATION_LOCK_FILE, NULL) == OK)
        evaluation_lock_release(path, held, why);
}

/* ---- restoring --------------------------------------------------------------------------------------------------- */

static enum evaluation_home evaluation_home_look(const char *ledger, const struct evaluation_lock_held *lock,
                                                 struct error *e)
{
    struct stat held, now;

    if (stat(ledger, &now) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return HOME_GONE;
    if (stat(ledger, &now) < 0 || fstat(lock->ledger, &held) < 0) {
        error_system(e, "%s: cannot read its status", ledger);
        return HOME_UNKNOWN;
    }
    if (now.st_dev == held.st_dev && now.st_ino == held.st_ino)
        return HOME_THERE;
    if (S_ISREG(now.st_mode) && !now.st_size) /* the state if it could not be made again */
        return HOME_GONE;
    error_set(e, ERR_PEER,
              "%s: is no longer the file that this evaluator writes to; move it elsewhere, or restart the evaluator to "
              "continue with it",
              ledger);
    return HOME_OTHER;
}

/* Makes EVAL with its lock and a new ledger that has the lines of the open one. Waits up to two seconds while somebody
 * else holds the lock (evaluation_lock_take()). */
static int evaluation_home_move(const struct evaluation_watch_settings *s, const struct watch_log *says,
                                struct ledger *l, struct evaluation_lock_held *held, const char *path, struct error *e)
{
    struct evaluation_lock_held fresh, old = *held;
    struct evaluation_lock said;
    char lock[PATH_MAX];
    struct stat st;
    int rc;

    if ((rc = lock_path(s, lock, e)) != OK)
        return rc;
    if (evaluation_lock_read(lock, &said) == LOCK_ALIVE && said.process.pid == getpid())
        unlink(lock); /* our own, if only the ledger is gone */
    if ((rc = take_lock(s, says, lock, 0, &fresh, e)) != OK)
        return rc;
    if (fstat(fresh.ledger, &st) < 0 || st.st_size)
        rc = error_set(e, ERR_PEER, "%s: was just made by another process", path);
    else if ((rc = ledger_move(l, fresh.ledger, e)) != OK)
        unlink(path);
    if (rc != OK) {
        evaluation_lock_release(lock, &fresh, "the ledger could not be made again");
        return rc;
    }
    *held = fresh;
    if (old.file >= 0)
        close(old.file);
    close(old.ledger);
    return OK;
}

/* what is read back from the ledger */
struct again {
    struct evaluation_best *keeper;
    struct evaluation_replay replay;
    int64_t run;        /* run of the open event file, which is made again as it was */
    size_t held, count; /* points of that run: in that file; in the ledger */
    size_t seen;
};

static int count_points(void *context, const struct ledger_record *r, struct error *e)
{
    struct again *a = context;

    (void)e;
    a->count += r->has_metrics && r->run == a->run;
    return OK;
}

static int take_again(void *context, const struct ledger_record *r, struct error *e)
{
    struct again *a = context;

    if (!a->replay.wanted)
        evaluation_best_recall(a->keeper, r);
    if (r->has_metrics && r->run == a->run && r->run == a->replay.wanted && a->seen++ + a->held >= a->count)
        return OK;
    return evaluation_replay_record(&a->replay, r, e);
}

/* Reads that ledger: writes its points to the event files that are missing, restores the open one as it was, and gives
 * its lines to the keeper. unrecorded: points of the open one that are not in the ledger. *count: how many points there
 * are now. */
static int evaluation_home_points(const struct evaluation_watch_settings *s, const char *ledger,
                                  struct evaluation_log *points, struct evaluation_best *keeper, size_t unrecorded,
                                  int64_t *count, struct error *e)
{
    const size_t held = evaluation_log_held(points);
    struct again a = { .keeper = keeper,
                       .replay = { .directory = s->eval_directory, .tags = s->tags, .missing = 1, .run = -1 },
                       .run = evaluation_log_newest(points),
                       .held = held - (held ? unrecorded : 0) };
    const char *own = evaluation_log_path(points);
    int rc;

    a.replay.own = own ? file_base_name(own) : NULL;
    a.replay.own_run = a.run;
    if ((rc = ledger_read(ledger, count_points, &a, NULL, e)) == OK)
        rc = evaluation_replay_ledger(&a.replay, ledger, take_again, &a, e);
    if (rc == OK)
        rc = evaluation_replay_end(&a.replay, e);
    else
        evaluation_replay_end(&a.replay, NULL);
    evaluation_log_restore(points);
    *count = a.replay.points + (int64_t)a.held;
    return rc;
}

/* ---- evaluation record ------------------------------------------------------------------------------------------- */

enum { LOOK_SECONDS = 1 };

struct evaluation_record {
    const struct evaluation_watch_settings *settings;
    const struct watch_log *says;
    struct queue *queue;              /* (open) */
    struct evaluation_lock_held lock; /* of EVAL */
    struct ledger *ledger;
    struct evaluation_log *points;
    struct evaluation_best *keeper; /* NULL: neither --keep-best nor --patience */
    struct evaluation_series series;
    struct outcomes outcomes;
    struct same_failures same;
    int64_t last_step, recalled_step;
    double check_next; /* monotonic: when to check again that EVAL exists */
    int lost;          /* EVAL is gone and cannot be made again */
    double retry_at;   /* monotonic: when to try a failed disk again; 0: no failure */
    int described;     /* `points` has the settings of the training */
    int best_missing_said;
    struct ledger_record *pending;
    size_t pending_count, pending_capacity;
    struct error pending_error;
};

/* ---- telling others -------------------------------------------------------------------------------------------- */

/* For --json. */
static void print_line(const struct evaluation_record *w, const struct ledger_record *r)
{
    struct buffer line = BUFFER_EMPTY;
    size_t name_end;

    if (!w->settings->json)
        return;
    if (w->settings->name) { /* the watch's name comes first in the object */
        buffer_append_text(&line, "{\"watch\":");
        json_text(&line, w->settings->name);
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

/* The path of the checkpoint for the commands of --on-... */
static void path_of(const struct evaluation_record *w, const char *name, int best, char out[PATH_MAX])
{
    const struct ledger_summary *s = ledger_summary(w->ledger);

    if (!(best && evaluation_best_kept(w->keeper, s, out, PATH_MAX)) &&
        file_join(out, PATH_MAX, w->settings->checkpoint_directory, name, NULL) != OK)
        *out = '\0';
}

static void post(struct evaluation_record *w, enum hook_event event, const struct ledger_record *r, const char *reason)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    const int best = event != HOOK_FAILURE && s->has_best;
    struct hook_values values = { .watch = w->settings->name,
                                  .eval_directory = w->settings->eval_directory,
                                  .checkpoint_directory = w->settings->checkpoint_directory,
                                  .reason = reason,
                                  .step = -1,
                                  .value = NAN,
                                  .done = s->done,
                                  .failed = outcomes_count(&w->outcomes, LEDGER_FAILED),
                                  .gone = outcomes_count(&w->outcomes, LEDGER_GONE) };
    char path[PATH_MAX] = "";

    if (!hooks_wanted(w->settings->hooks, event))
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
    hooks_post(w->settings->hooks, event, &values);
}

/* Call once its line is in the ledger and EVAL/best/ is updated. */
static void post_outcome(struct evaluation_record *w, const struct ledger_record *r)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);

    if (r->status == LEDGER_UNTRIED)
        return;
    if (r->status != LEDGER_DONE)
        post(w, HOOK_FAILURE, r, r->reason);
    else if (s->has_best && !s->since_best && checkpoint_identity_same(&s->best, &r->checkpoint))
        post(w, HOOK_BEST, r, NULL);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Takes in a line of the ledger, read or just written. */
static int note(struct evaluation_record *w, const struct ledger_record *r, struct error *e)
{
    int rc = outcomes_note(&w->outcomes, r, e);

    same_failures_note(&w->same, r);
    if (r->status == LEDGER_UNTRIED)
        return rc;
    w->last_step = r->checkpoint.step;
    return rc == OK ? evaluation_series_add(&w->series, w->settings->tags, r, e) : rc;
}

/* A line that an earlier process wrote, or would have written. */
static int recall(void *context, const struct ledger_record *r, struct error *e)
{
    struct evaluation_record *w = context;
    const struct checkpoint_identity *c = &r->checkpoint;
    int rc = note(w, r, e);

    if (rc != OK)
        return rc;
    if (r->has_metrics && (rc = evaluation_log_seen(w->points, r->run, c->step, e)) != OK)
        return rc;
    if (c->step > w->recalled_step)
        w->recalled_step = c->step;
    evaluation_best_recall(w->keeper, r);
    if (!c->has_digest || r->status >= LEDGER_GONE || (r->status == LEDGER_FAILED && w->settings->retry_failed))
        return OK;
    if ((c->digest_after && queue_remember(w->queue, c->name, c->digest_after, e) != OK) ||
        queue_remember(w->queue, c->name, c->digest, e) != OK)
        return ERR_NOMEM;
    if (r->status == LEDGER_DONE) /* one that failed is not to be missed while it is whole */
        queue_was_evaluated(w->queue, c->name, r->wall_time);
    return OK;
}

/* 1: a name comes again, with other steps. */
static int by_step(const struct evaluation_watch_settings *s)
{
    return s->watcher.source.steps.from != STEP_FROM_NAME;
}

static int open_keeper(struct evaluation_record *w, struct error *e)
{
    const struct evaluation_watch_settings *s = w->settings;
    const struct evaluation_best_options options = { .checkpoint_directory = s->checkpoint_directory,
                                                     .eval_directory = s->eval_directory,
                                                     .keep = (size_t)s->keep_best,
                                                     .patience = s->patience,
                                                     .rule = s->best,
                                                     .volatile_names = by_step(s) };

    return s->keep_best || s->patience ? evaluation_best_open(&w->keeper, &options, e) : OK;
}

/* What followed from the best; rc and trouble are of evaluation_best.h. */
static void say_best(const struct evaluation_record *w, int rc, const struct error *trouble)
{
    if (rc == EVALUATION_BEST_STOP)
        watch_log_say(w->says, "%s; %s/stop.json asks the training to end", trouble->message,
                      w->settings->checkpoint_directory);
    else if (rc != OK)
        watch_log_say(w->says, "%s", trouble->message);
}

struct sought {
    const struct ledger_record *record;
    int found;
};

static int look_for(void *context, const struct ledger_record *r, struct error *e)
{
    struct sought *s = context;

    (void)e;
    s->found |= checkpoint_identity_same(&s->record->checkpoint, &r->checkpoint) &&
                r->wall_time == s->record->wall_time;
    return OK;
}

/* An earlier process may have ended between points and line. *missed: yours; its points are there, its line was not. */
static int record_missed(struct evaluation_record *w, const char *path, struct ledger_record *missed, struct error *e)
{
    const char *line = evaluation_log_unrecorded(w->points);
    struct sought sought = { missed, 0 };
    int rc = OK;

    if (!line || ledger_parse(line, strlen(line), missed, NULL) != OK)
        return OK;
    if ((rc = ledger_read(path, look_for, &sought, NULL, e)) == OK && !sought.found &&
        (rc = evaluation_log_settle(w->points, e)) > 0 && (rc = ledger_append(w->ledger, missed, e)) == OK &&
        (rc = recall(w, missed, e)) == OK) {
        watch_log_say(w->says, "%s: recorded now; an earlier process had written its points", missed->checkpoint.name);
        print_line(w, missed);
        evaluation_log_recorded(w->points);
        return OK;
    }
    ledger_record_release(missed);
    *missed = (struct ledger_record){ .has_metrics = 0 };
    if (rc == OK)
        evaluation_log_recorded(w->points);
    return rc;
}

static uint64_t stamp(const struct evaluation_record *w)
{
    return w->settings->command ? command_stamp(w->settings->command) : 0;
}

static int open_all(struct evaluation_record *w, struct error *e)
{
    const struct evaluation_watch_settings *s = w->settings;
    const struct ledger_summary *summary;
    struct ledger_record missed = { .has_metrics = 0 };
    char path[PATH_MAX];
    struct error trouble = { 0 };
    int rc;

    if ((rc = evaluation_home_take(s, w->says, &w->lock, e)) != OK || (rc = open_keeper(w, e)) != OK ||
        (rc = file_join(path, sizeof path, s->eval_directory, LEDGER_FILE, e)) != OK ||
        (rc = evaluation_log_open(&w->points, s->eval_directory, s->tags, s->open_files, -1, -1, e)) != OK ||
        (rc = ledger_open(&w->ledger, NULL, path, w->lock.ledger, &s->best, recall, w, e)) != OK)
        return rc;
    /* A command that had failed for all is tried again: what it needed may be there now, and no file of it changed. */
    evaluation_record_mended(w, w->same.count < SAME_FAILURES_MOST ? stamp(w) : 0, NULL, NULL);
    summary = ledger_summary(w->ledger);
    if (summary->cut_bytes)
        watch_log_say(w->says, "%s: dropped an incomplete last line of %zu bytes", path, summary->cut_bytes);
    if (summary->odd_lines)
        watch_log_say(w->says, "%s: skipped %zu lines that are not ledger records", path, summary->odd_lines);
    if ((rc = record_missed(w, path, &missed, e)) != OK)
        return rc;
    say_best(w, evaluation_best_resume(w->keeper, summary, &trouble), &trouble);
    if (*missed.checkpoint.name)
        post_outcome(w, &missed);
    ledger_record_release(&missed);
    return OK;
}

int evaluation_record_open(struct evaluation_record **out, const struct evaluation_watch_settings *s,
                           const struct watch_log *says, struct queue *queue, struct error *e)
{
    struct evaluation_record *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w)
        return error_memory(e, s->eval_directory, "to record what becomes of checkpoints");
    w->settings = s;
    w->says = says;
    w->queue = queue;
    w->lock = (struct evaluation_lock_held)EVALUATION_LOCK_NOT_HELD;
    w->last_step = w->recalled_step = -1;
    outcomes_init(&w->outcomes, by_step(s));
    if ((rc = open_all(w, e)) == OK)
        *out = w;
    else
        evaluation_record_close(w, "stopped");
    return rc;
}

void evaluation_record_close(struct evaluation_record *w, const char *why)
{
    if (!w)
        return;
    evaluation_log_close(w->points, NULL);
    evaluation_best_close(w->keeper);
    ledger_close(w->ledger);
    evaluation_series_release(&w->series);
    outcomes_release(&w->outcomes);
    evaluation_home_leave(w->settings, &w->lock, why);
    free(w->pending);
    free(w);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

const struct ledger_summary *evaluation_record_summary(const struct evaluation_record *w)
{
    return ledger_summary(w->ledger);
}

void evaluation_record_readable(struct evaluation_record *w, const char *name)
{
    outcomes_read(&w->outcomes, name);
}

struct evaluation_record_facts evaluation_record_facts(const struct evaluation_record *w)
{
    const double now = clock_monotonic();

    return (struct evaluation_record_facts){
        .summary = ledger_summary(w->ledger),
        .series = &w->series,
        .last_step = w->last_step,
        .failed = outcomes_count(&w->outcomes, LEDGER_FAILED),
        .gone = outcomes_count(&w->outcomes, LEDGER_GONE),
        .untried = outcomes_count(&w->outcomes, LEDGER_UNTRIED),
        .same_failures = w->same.count,
        .recalled_step = w->recalled_step,
        .pending = w->pending_count,
        .retries = w->retry_at > 0,
        .due = w->retry_at > 0    ? w->retry_at - now
               : w->pending_count ? 0
                                  : w->check_next - now,
    };
}

void evaluation_record_check_soon(struct evaluation_record *w)
{
    w->check_next = 0;
}

/* ---- lines of the ledger ----------------------------------------------------------------------------------------- */

/* The disk is full or failing: logs it once, and retries until it works or a signal ends it. */
static int try_later(struct evaluation_record *w, const char *what, const char *name, int signalled,
                     const struct error *why, struct error *e)
{
    if (w->retry_at <= 0)
        watch_log_warn(w->says, "error", "%s: %s: %s; trying again every %g s", name, what, why->message,
                       w->settings->retry_seconds);
    w->retry_at = clock_monotonic() + w->settings->retry_seconds;
    if (!signalled)
        return EVALUATION_LATER;
    error_set(e, why->code, "%s is not recorded; the next start does that, or evaluates it again: %.300s", name,
              why->message);
    return EVALUATION_GIVEN_UP;
}

static int append(struct evaluation_record *w, const struct ledger_record *r, int signalled, struct error *e)
{
    struct error why = { 0 };
    int rc;

    if (ledger_append(w->ledger, r, &why) != OK)
        return try_later(w, "not recorded", r->checkpoint.name, signalled, &why, e);
    if (w->retry_at > 0)
        watch_log_say(w->says, "%s: recorded now", r->checkpoint.name);
    w->retry_at = 0;
    if (r->has_metrics)
        evaluation_log_recorded(w->points);
    if ((rc = note(w, r, e)) != OK)
        return rc;
    print_line(w, r);
    return OK;
}

static int stop_if_strict(const struct evaluation_record *w, const struct ledger_record *r, struct error *e)
{
    if (!w->settings->strict || r->status == LEDGER_DONE || r->status == LEDGER_UNTRIED)
        return OK;
    error_set(e, ERR_CORRUPT, "%s: %.300s; ending because of --strict", r->checkpoint.name, r->reason);
    return EVALUATION_STOPPED;
}

void evaluation_record_end(struct evaluation_record *w, const char *reason)
{
    post(w, HOOK_END, NULL, reason);
}

const struct ledger_record *evaluation_record_outcome(struct evaluation_record *w,
                                                      const struct checkpoint_identity *checkpoint,
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

void evaluation_record_untried(struct evaluation_record *w, const struct checkpoint_identity *checkpoint,
                               const char *reason)
{
    if (!outcomes_is(&w->outcomes, checkpoint->name, checkpoint->step, LEDGER_UNTRIED))
        evaluation_record_outcome(w, checkpoint, LEDGER_UNTRIED, reason);
}

size_t evaluation_record_mended(struct evaluation_record *w, uint64_t command,
                                void (*found)(void *context, const char *name), void *context)
{
    size_t count = 0;

    for (size_t i = 0; i < w->outcomes.count; i++) {
        const struct outcome *o = &w->outcomes.items[i];

        if (o->status != LEDGER_FAILED || !o->command || o->command == command)
            continue;
        queue_forget(w->queue, o->name, o->digest);
        queue_forget(w->queue, o->name, o->digest_after);
        if (found)
            found(context, o->name);
        count++;
    }
    w->same = (struct same_failures){ 0 };
    return count;
}

int evaluation_record_pending(struct evaluation_record *w, int signalled, struct error *e)
{
    if (w->pending_error.code)
        return error_copy(e, &w->pending_error);
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

/* ---- flights ----------------------------------------------------------------------------------------------------- */

static void say_best_missing(const struct evaluation_record *w, const struct ledger_record *r)
{
    struct buffer names = BUFFER_EMPTY;

    for (size_t i = 0; i < r->metrics.count; i++)
        buffer_format(&names, "%s%s", i ? ", " : "", r->metrics.items[i].name);
    if (r->metrics.count)
        watch_log_say(w->says, "%s: no metric '%s' to choose the best by; choose with --best-metric: %.300s",
                      r->checkpoint.name, ledger_summary(w->ledger)->rule.metric, buffer_text(&names));
    buffer_release(&names);
}

/* Inserts best_NAME, the best value including this evaluation, after the metric NAME. */
static int add_best(struct evaluation_record *w, struct ledger_record *r, struct error *e)
{
    const struct ledger_summary *s = ledger_summary(w->ledger);
    const struct evaluation_metric *metric = evaluation_metrics_find(&r->metrics, s->rule.metric);
    double best = s->has_best ? s->best_value : NAN;
    char name[EVALUATION_NAME_MAX + sizeof EVALUATION_BEST];

    if (!metric) {
        if (!w->best_missing_said)
            say_best_missing(w, r);
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

static int prepare(struct evaluation_record *w, struct evaluation_flight *f, struct error *e)
{
    struct ledger_record *r = evaluation_flight_record(f);
    const struct evaluation_metric *loss = evaluation_metrics_find(&r->metrics, EVALUATION_LOSS);
    int rc = OK;

    evaluation_flight_advance(f, FLIGHT_PREPARED);
    if (!r->has_metrics)
        return OK;
    if (loss && isnan(loss->value)) {
        r->status = LEDGER_FAILED;
        snprintf(r->reason, sizeof r->reason, "the loss is NaN");
    }
    for (size_t i = 0; i < r->metrics.count; i++)
        if (isnan(r->metrics.items[i].value) && loss != &r->metrics.items[i])
            watch_log_say(w->says, "%s: %s is NaN", r->checkpoint.name, r->metrics.items[i].name);
    if ((rc = add_best(w, r, e)) != OK)
        return rc;
    r->run = evaluation_log_run(w->points, r->checkpoint.step);
    if (r->run && r->run > ledger_summary(w->ledger)->last_run) {
        char directory[PATH_MAX];

        if (evaluation_log_directory(w->settings->eval_directory, r->run, directory, sizeof directory, NULL) == OK)
            watch_log_say(w->says,
                          "%s: step %" PRId64 " is lower than one that was evaluated before: its points go to %s",
                          r->checkpoint.name, r->checkpoint.step, directory);
    }
    return OK;
}

/* Not earlier: a trainer that was started together with us has written training.json by its first checkpoint. */
static void describe(struct evaluation_record *w)
{
    struct training_state training;
    int known = training_state_read(w->settings->checkpoint_directory, &training, NULL) == 1;

    evaluation_log_describe(w->points, known ? &training : NULL, w->settings->model, w->settings->data);
    w->described = 1;
}

static int write_points(struct evaluation_record *w, struct evaluation_flight *f, int signalled, struct error *e)
{
    const struct ledger_record *r = evaluation_flight_record(f);
    struct buffer line = BUFFER_EMPTY;
    struct evaluation_point p = { r->checkpoint.step, r->point_time > 0 ? r->point_time : r->wall_time, &r->metrics,
                                  evaluation_flight_detail(f), NULL };
    struct error why = { 0 };
    int rc = OK;

    if (r->has_metrics && w->settings->session && !w->described)
        describe(w);
    if (r->has_metrics) {
        ledger_format(r, &line);
        p.line = buffer_text(&line);
        rc = buffer_ok(&line) ? evaluation_log_point(w->points, &p, &why) : error_memory(&why, NULL, "for its line");
        buffer_release(&line);
    }
    if (rc != OK)
        return try_later(w, "points not written", r->checkpoint.name, signalled, &why, e);
    evaluation_flight_advance(f, FLIGHT_WRITTEN);
    return OK;
}

void evaluation_record_begin(struct evaluation_record *w, struct evaluation_flight *f)
{
    const struct queue_item *item = evaluation_flight_item(f);

    evaluation_best_before(w->keeper, evaluation_flight_directory(f), item->pinned != NULL, &item->checkpoint);
}

void evaluation_record_forget(struct evaluation_record *w, const struct checkpoint_identity *checkpoint)
{
    evaluation_best_forget(w->keeper, checkpoint);
}

int evaluation_record_flight(struct evaluation_record *w, struct evaluation_flight *f, int signalled, int *done,
                             struct error *e)
{
    const struct ledger_record *r = evaluation_flight_record(f);
    struct error trouble = { 0 };
    int rc = OK;

    *done = 0;
    if ((evaluation_flight_state(f) == FLIGHT_LANDED && (rc = prepare(w, f, e)) != OK) ||
        (evaluation_flight_state(f) == FLIGHT_PREPARED && (rc = write_points(w, f, signalled, e)) != OK) ||
        (rc = append(w, r, signalled, e)) != OK)
        return rc;
    *done = 1;
    watch_log_result(w->says, r);
    rc = evaluation_best_after(w->keeper, r, ledger_summary(w->ledger), &trouble);
    say_best(w, rc, &trouble);
    post_outcome(w, r);
    return stop_if_strict(w, r, e);
}

/* ---- EVAL, made again -------------------------------------------------------------------------------------------- */

static int make_again(struct evaluation_record *w, const char *ledger, size_t unrecorded, struct error *e)
{
    struct error trouble = { 0 };
    int64_t points = 0;
    int rc = evaluation_home_move(w->settings, w->says, w->ledger, &w->lock, ledger, e);

    if (rc != OK)
        return rc;
    evaluation_best_close(w->keeper);
    w->keeper = NULL;
    if (open_keeper(w, &trouble) != OK)
        watch_log_warn(w->says, "error", "%s", trouble.message);
    if ((rc = evaluation_home_points(w->settings, ledger, w->points, w->keeper, unrecorded, &points, &trouble)) != OK)
        watch_log_warn(w->says, "error", "%s; `evaluator replay` writes the points again from the ledger",
                       trouble.message);
    say_best(w, evaluation_best_resume(w->keeper, ledger_summary(w->ledger), &trouble), &trouble);
    watch_log_warn(w->says, "warning",
                   "%s was deleted, moved or replaced; made again with %zu lines of the ledger and %" PRId64 " points",
                   w->settings->eval_directory, ledger_lines(ledger_summary(w->ledger)), points);
    return OK;
}

int evaluation_record_check(struct evaluation_record *w, struct evaluation_flight *first, int signalled,
                            struct error *e)
{
    const int recording = w->pending_count || (first && evaluation_flight_state(first) != FLIGHT_RUNNING);
    const double now = clock_monotonic();
    struct error why = { 0 };
    char ledger[PATH_MAX];
    enum evaluation_home home;
    int rc = OK;

    if (now < w->check_next && !recording && !signalled)
        return OK;
    w->check_next = now + (double)LOOK_SECONDS;
    if ((rc = file_join(ledger, sizeof ledger, w->settings->eval_directory, LEDGER_FILE, e)) != OK)
        return rc;
    home = evaluation_home_look(ledger, &w->lock, &why);
    if (home == HOME_GONE && w->settings->in_tree && !recording && !first &&
        access(w->settings->checkpoint_directory, F_OK) < 0)
        return OK;
    if (home == HOME_THERE && evaluation_log_restore(w->points)) {
        watch_log_warn(w->says, "warning", "the event file was deleted, moved or replaced; made again as %s",
                       evaluation_log_path(w->points));
        home = evaluation_home_look(ledger, &w->lock, &why); /* not all of EVAL was made again */
    }
    if (home == HOME_GONE) /* the newest may be in the event file, and not in the ledger yet */
        rc = make_again(w, ledger,
                        first && evaluation_flight_state(first) == FLIGHT_WRITTEN &&
                            evaluation_flight_record(first)->has_metrics,
                        &why);
    if (home == HOME_THERE || (home == HOME_GONE && rc == OK)) {
        if (w->lost)
            w->retry_at = 0;
        w->lost = 0;
        return home == HOME_GONE ? EVALUATION_MADE_AGAIN : OK;
    }
    if (!w->lost)
        watch_log_warn(w->says, "error", "%s; nothing can be recorded, trying again every %g s", why.message,
                       w->settings->retry_seconds);
    w->lost = 1;
    w->retry_at = now + w->settings->retry_seconds;
    if (!signalled)
        return EVALUATION_LATER;
    error_set(e, why.code, "%s", why.message);
    return EVALUATION_GIVEN_UP;
}
