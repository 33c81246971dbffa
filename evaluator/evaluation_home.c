#include "evaluator/evaluation_home.h"

#include "base/clock.h"
#include "base/file.h"
#include "evaluator/evaluation_record.h"
#include "evaluator/record/evaluation_replay.h"
#include "evaluator/watch_log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_SECONDS = 1 };

static int recall(void *context, const struct ledger_record *r, struct error *e)
{
    struct evaluation_watch *w = context;
    const struct checkpoint_identity *c = &r->checkpoint;
    int rc = evaluation_record_note(w, r, e);

    if (rc != OK)
        return rc;
    if (c->step > w->greatest_step)
        w->greatest_step = c->step;
    evaluation_best_recall(w->keeper, r);
    if (!c->has_digest || r->status == LEDGER_GONE || (r->status == LEDGER_FAILED && w->settings.retry_failed))
        return OK;
    if (c->digest_after && queue_remember(w->queue, c->name, c->digest_after, e) != OK)
        return ERR_NOMEM;
    return queue_remember(w->queue, c->name, c->digest, e);
}

static int take_lock(struct evaluation_watch *w, const char *path, int take_over, struct evaluation_lock_held *held,
                     struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    const char *tags = s->tags == evaluation_tags_plain() ? "plain" : s->tags->preset ? s->tags->preset : "default";
    const struct evaluation_lock_about about = { s->checkpoint_directory, s->source.pattern, s->source.step_from, tags,
                                                 s->source.step_scale, s->source.step_offset };
    enum evaluation_lock_state was;
    struct evaluation_lock before;
    int rc = evaluation_lock_take(path, &about, take_over, held, &before, &was, e);

    if (rc == OK && (was == LOCK_DEAD || was == LOCK_ELSEWHERE))
        watch_log_say(w, "taking over from process %" PRId64 " on host %s, which %s", before.process.pid,
                      before.process.host, was == LOCK_DEAD ? "died" : "is taken for gone (--take-over)");
    return rc;
}

static int open_keeper(struct evaluation_watch *w, struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    const struct evaluation_best_options options = { .checkpoint_directory = s->checkpoint_directory,
                                                     .eval_directory = s->eval_directory, .keep = s->keep_best,
                                                     .patience = s->patience, .rule = s->best,
                                                     .volatile_names = w->outcomes.by_step };

    return s->keep_best || s->patience ? evaluation_best_open(&w->keeper, &options, e) : OK;
}

int evaluation_home_open(struct evaluation_watch *w, struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    const struct ledger_summary *summary;
    char path[PATH_MAX];
    struct error trouble = { 0 };
    int rc;

    if ((rc = file_make_directories(s->eval_directory, e)) != OK ||
        (rc = file_join(path, sizeof path, s->eval_directory, EVALUATION_LOCK_FILE, e)) != OK ||
        (rc = take_lock(w, path, s->take_over, &w->lock, e)) != OK ||
        (rc = evaluation_work_check(s->eval_directory, e)) != OK)
        return rc;
    if ((rc = open_keeper(w, e)) != OK ||
        (rc = file_join(path, sizeof path, s->eval_directory, LEDGER_FILE, e)) != OK ||
        (rc = ledger_open(&w->ledger, NULL, path, w->lock.ledger, &s->best, recall, w, e)) != OK)
        return rc;
    summary = ledger_summary(w->ledger);
    if (summary->cut_bytes)
        watch_log_say(w, "%s: dropped a cut last line of %zu bytes", path, summary->cut_bytes);
    if (summary->odd_lines)
        watch_log_say(w, "%s: passed over %zu lines that are not of a ledger", path, summary->odd_lines);
    if (summary->highest_step >= 0)
        w->position = 1; /* the one before was evaluated by an earlier process */
    if ((rc = evaluation_log_open(&w->points, s->eval_directory, s->tags, s->open_files, summary->last_run,
                                  summary->last_step, e)) != OK)
        return rc;
    evaluation_record_best(w, evaluation_best_resume(w->keeper, summary, &trouble), &trouble);
    return OK;
}

/* ---- made again -------------------------------------------------------------------------------------------------- */

enum home { HOME_THERE, HOME_GONE, HOME_OTHER, HOME_UNKNOWN };

static enum home look(const struct evaluation_watch *w, const char *ledger, struct error *e)
{
    struct stat held, now;

    if (stat(ledger, &now) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return HOME_GONE;
    if (stat(ledger, &now) < 0 || fstat(w->lock.ledger, &held) < 0) {
        error_system(e, "%s: cannot be looked at", ledger);
        return HOME_UNKNOWN;
    }
    if (now.st_dev == held.st_dev && now.st_ino == held.st_ino)
        return HOME_THERE;
    if (S_ISREG(now.st_mode) && !now.st_size) /* what is left where it could not be made again */
        return HOME_GONE;
    error_set(e, ERR_PEER, "%s: is not the file that this evaluator writes to any more; move it elsewhere, or start "
              "the evaluator again to go on with it", ledger);
    return HOME_OTHER;
}

/* A new ledger with the lines of the old one. */
static int move_ledger(struct evaluation_watch *w, const char *ledger, struct error *e)
{
    struct evaluation_lock_held fresh, old = w->lock;
    struct evaluation_lock said;
    char lock[PATH_MAX];
    struct stat st;
    int rc;

    if ((rc = file_make_directories(w->settings.eval_directory, e)) != OK ||
        (rc = file_join(lock, sizeof lock, w->settings.eval_directory, EVALUATION_LOCK_FILE, e)) != OK)
        return rc;
    if (evaluation_lock_read(lock, &said) == LOCK_ALIVE && said.process.pid == getpid())
        unlink(lock); /* our own, where the ledger alone is gone */
    if ((rc = take_lock(w, lock, 0, &fresh, e)) != OK)
        return rc;
    if (fstat(fresh.ledger, &st) < 0 || st.st_size)
        rc = error_set(e, ERR_PEER, "%s: was made by another process just now", ledger);
    else if ((rc = ledger_move(w->ledger, fresh.ledger, e)) != OK)
        unlink(ledger);
    if (rc != OK) {
        evaluation_lock_release(lock, &fresh, "the ledger could not be made again");
        return rc;
    }
    w->lock = fresh;
    if (old.file >= 0)
        close(old.file);
    close(old.ledger);
    return OK;
}

struct again { /* what is read back from the ledger */
    struct evaluation_watch *watch;
    struct evaluation_replay replay;
    int64_t run;        /* that of the open event file, which is made again as it is */
    size_t held, count; /* points of that run in that file; in the ledger */
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

    evaluation_best_recall(a->watch->keeper, r);
    if (r->has_metrics && r->run == a->run && a->seen++ + a->held >= a->count)
        return OK;
    return evaluation_replay_record(&a->replay, r, e);
}

static int make_points(struct evaluation_watch *w, const char *ledger, int64_t *points, struct error *e)
{
    const struct evaluation_watch_settings *s = &w->settings;
    struct again a = { .watch = w,
                       .replay = { .directory = s->eval_directory, .tags = s->tags, .missing = 1, .run = -1 },
                       .run = evaluation_log_run(w->points, INT64_MAX), .held = evaluation_log_held(w->points) };
    const char *own = evaluation_log_path(w->points);
    int rc;

    a.replay.own = own ? file_base_name(own) : NULL;
    a.replay.own_run = a.run;
    /* The newest may be in the event file, and not in the ledger yet. */
    if (a.held && w->flight_count && w->flights[0]->state == FLIGHT_WRITTEN && w->flights[0]->record.has_metrics)
        a.held--;
    if ((rc = ledger_read(ledger, count_points, &a, NULL, e)) == OK)
        rc = ledger_read(ledger, take_again, &a, NULL, e);
    if (rc == OK)
        rc = evaluation_replay_end(&a.replay, e);
    else
        evaluation_replay_end(&a.replay, NULL);
    evaluation_log_restore(w->points);
    *points = a.replay.points + (int64_t)a.held;
    return rc;
}

static int lost_pin(const struct queue_item *item)
{
    return item->pinned && !item->opened && access(item->pinned, F_OK) < 0;
}

/* What waited pinned is found again, if the trainer has not deleted it. */
static void forget_pins(struct evaluation_watch *w)
{
    struct queue_item item;

    while (queue_take_if(w->queue, lost_pin, &item)) {
        evaluation_watch_find_again(w, &item);
        queue_item_release(&item);
    }
}

static int make_again(struct evaluation_watch *w, const char *ledger, struct error *e)
{
    struct error trouble = { 0 };
    int64_t points = 0;
    int rc = move_ledger(w, ledger, e);

    if (rc != OK)
        return rc;
    evaluation_best_close(w->keeper);
    w->keeper = NULL;
    if (open_keeper(w, &trouble) != OK)
        watch_log_warn(w, "error", "%s", trouble.message);
    if ((rc = make_points(w, ledger, &points, &trouble)) != OK)
        watch_log_warn(w, "error", "%s; `evaluator replay` writes the points again from the ledger", trouble.message);
    evaluation_record_best(w, evaluation_best_resume(w->keeper, ledger_summary(w->ledger), &trouble), &trouble);
    for (size_t i = 0; i < w->flight_count; i++) {
        const struct evaluation_flight *f = w->flights[i];

        evaluation_best_before(w->keeper, f->directory, f->item.pinned != NULL, &f->item.checkpoint);
    }
    forget_pins(w);
    memset(&w->work, 0, sizeof w->work);
    watch_log_warn(w, "warning", "%s was deleted, moved or replaced; made again with %zu lines of the ledger and "
                   "%" PRId64 " points", w->settings.eval_directory, ledger_lines(ledger_summary(w->ledger)), points);
    return OK;
}

int evaluation_home_check(struct evaluation_watch *w, int signalled, struct error *e)
{
    const int recording = w->pending_count || (w->flight_count && w->flights[0]->state != FLIGHT_RUNNING);
    const double now = clock_monotonic();
    struct error why = { 0 };
    char ledger[PATH_MAX];
    enum home home;
    int rc = OK;

    if (now < w->home_next && !recording && !signalled)
        return OK;
    w->home_next = now + LOOK_SECONDS;
    if ((rc = file_join(ledger, sizeof ledger, w->settings.eval_directory, LEDGER_FILE, e)) != OK)
        return rc;
    home = look(w, ledger, &why);
    if (home == HOME_GONE && w->settings.in_tree && !recording && !w->flight_count &&
        access(w->settings.checkpoint_directory, F_OK) < 0)
        return OK;
    if (home == HOME_THERE && evaluation_log_restore(w->points)) {
        watch_log_warn(w, "warning", "the event file was deleted, moved or replaced; made again as %s",
                       evaluation_log_path(w->points));
        home = look(w, ledger, &why); /* what was made again is not all of EVAL */
    }
    if (home == HOME_GONE)
        rc = make_again(w, ledger, &why);
    if (home == HOME_THERE || (home == HOME_GONE && rc == OK)) {
        if (w->home_lost)
            w->retry_at = 0;
        w->home_lost = 0;
        return OK;
    }
    if (!w->home_lost)
        watch_log_warn(w, "error", "%s; nothing is recorded before, trying again every %g s", why.message,
                       w->settings.retry_seconds);
    w->home_lost = 1;
    w->retry_at = now + w->settings.retry_seconds;
    if (!signalled)
        return EVALUATION_RECORD_LATER;
    error_set(e, why.code, "%s", why.message);
    return WATCH_GIVEN_UP;
}
