#include "evaluator/evaluation_home.h"

#include "base/file.h"
#include "evaluator/record/evaluation_replay.h"
#include "evaluator/record/evaluation_work.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

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

int evaluation_home_take(const struct evaluation_watch_settings *s, const struct watch_log *says,
                         struct evaluation_lock_held *held, struct error *e)
{
    char path[PATH_MAX];
    int rc;

    if ((rc = lock_path(s, path, e)) != OK || (rc = take_lock(s, says, path, s->take_over, held, e)) != OK)
        return rc;
    return evaluation_work_check(s->eval_directory, e);
}

void evaluation_home_leave(const struct evaluation_watch_settings *s, const struct evaluation_lock_held *held,
                           const char *why)
{
    char path[PATH_MAX];

    if (file_join(path, sizeof path, s->eval_directory, EVALUATION_LOCK_FILE, NULL) == OK)
        evaluation_lock_release(path, held, why);
}

/* ---- restoring --------------------------------------------------------------------------------------------------- */

enum evaluation_home evaluation_home_look(const char *ledger, const struct evaluation_lock_held *lock, struct error *e)
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

int evaluation_home_move(const struct evaluation_watch_settings *s, const struct watch_log *says, struct ledger *l,
                         struct evaluation_lock_held *held, const char *path, struct error *e)
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

int evaluation_home_points(const struct evaluation_watch_settings *s, const char *ledger, struct evaluation_log *points,
                           struct evaluation_best *keeper, size_t unrecorded, int64_t *count, struct error *e)
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
