#include "evaluator/evaluation_intake.h"

#include "base/clock.h"
#include "evaluator/files/content_digest.h"
#include "evaluator/record/pin.h"
#include "evaluator/watch/lookout.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct evaluation_intake {
    const struct evaluation_watch_settings *settings;
    const struct watch_log *says;
    struct evaluation_record *record;
    struct queue *queue;
    struct lookout_post *post;
    size_t undecided;      /* of lookout_tell() */
    int64_t greatest_step; /* of lines and pins of earlier processes; -1: none */
    double first_look, last_found, newest_written;
    int64_t newest_step;
    int full_said;
};

/* ---- what the watcher tells -------------------------------------------------------------------------------------- */

static void on_found(struct evaluation_intake *w, const struct watcher_news *news)
{
    w->last_found = clock_monotonic();
    if (news->written >= w->newest_written) {
        w->newest_written = news->written;
        w->newest_step = news->checkpoint->step;
    }
    if (news->full && !w->full_said) {
        w->full_said = 1;
        watch_log_say(w->says,
                      "%zu checkpoints wait %s, which is the limit; later ones are opened as places become free, and "
                      "are lost if they are deleted before",
                      w->settings->queue_limit, w->settings->pin ? "pinned" : "with their files open");
    }
}

static void on_failed(struct evaluation_intake *w, const struct checkpoint_identity *checkpoint, const char *reason)
{
    const struct ledger_record *r = evaluation_record_outcome(w->record, checkpoint, LEDGER_FAILED, reason);

    if (r)
        watch_log_of(w->says, r, "error", "%s: failed: incomplete, and no longer changing: %s", checkpoint->name,
                     reason);
}

static void on_unread(struct evaluation_intake *w, const struct checkpoint_identity *checkpoint, const char *reason)
{
    const struct ledger_record *r = evaluation_record_outcome(w->record, checkpoint, LEDGER_FAILED, reason);

    if (r)
        watch_log_of(w->says, r, "error", "%s: failed: cannot be read: %s; the next start tries again",
                     checkpoint->name, reason);
}

static void on_gone(struct evaluation_intake *w, const struct checkpoint_identity *checkpoint)
{
    static const char reason[] = "deleted before it could be opened whole";
    const struct ledger_record *r;

    if (w->settings->watcher.source.steps.from != STEP_FROM_NAME) /* the name may come back; no step was known */
        watch_log_say(w->says, "%s: %s", checkpoint->name, reason);
    else if ((r = evaluation_record_outcome(w->record, checkpoint, LEDGER_GONE, reason)))
        watch_log_of(w->says, r, "warning", "%s: gone: %s", checkpoint->name, reason);
}

static void on_news(void *context, const struct watcher_news *news)
{
    struct evaluation_intake *w = context;
    const char *directory = w->settings->checkpoint_directory;

    switch (news->kind) {
    case WATCHER_FOUND: on_found(w, news); break;
    case WATCHER_FAILED: on_failed(w, news->checkpoint, news->text); break;
    case WATCHER_UNREAD: on_unread(w, news->checkpoint, news->text); break;
    case WATCHER_KNOWN: evaluation_record_readable(w->record, news->text); break;
    case WATCHER_LOST: on_gone(w, news->checkpoint); break;
    case WATCHER_THERE: watch_log_say(w->says, "watching %s", directory); break;
    case WATCHER_NOWHERE:
        watch_log_say(w->says,
                      w->first_look > 0 ? "%s is gone; waiting for it to come back"
                                        : "%s does not exist yet; waiting for it",
                      directory);
        break;
    case WATCHER_TROUBLE: watch_log_warn(w->says, "warning", "%s", news->text); break;
    }
}

int evaluation_intake_hear(struct evaluation_intake *w, struct error *e)
{
    return lookout_tell(w->post, on_news, w, &w->undecided, e);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int evaluation_intake_new(struct evaluation_intake **out, const struct evaluation_watch_settings *s,
                          const struct watch_log *says, struct error *e)
{
    struct evaluation_intake *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w)
        return error_memory(e, NULL, "to watch %s", s->checkpoint_directory);
    w->settings = s;
    w->says = says;
    w->newest_step = -1;
    w->last_found = clock_monotonic();
    if ((rc = queue_new(&w->queue, s->queue_limit, e)) == OK)
        *out = w;
    else
        free(w);
    return rc;
}

void evaluation_intake_free(struct evaluation_intake *w)
{
    if (!w)
        return;
    lookout_close(w->post);
    queue_free(w->queue);
    free(w);
}

struct queue *evaluation_intake_queue(const struct evaluation_intake *w)
{
    return w->queue;
}

/* A pin of an earlier process: already recorded, or still to be evaluated. */
static int recall_pin(void *context, const struct pin *pin, const char *path, uint64_t bytes, struct error *e)
{
    struct evaluation_intake *w = context;
    struct queue_item item = {
        .checkpoint = pin->checkpoint, .kind = pin->kind, .pinned_bytes = bytes, .found = clock_wall()
    };
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
        return OK; /* the next start finds it again, or the directory has it */
    item.written = item.modified = item.found;
    if (checkpoint_witness(pin->kind, path, witness, sizeof witness, NULL) == OK && stat(witness, &st) == 0)
        item.written = item.modified = file_stamp_modified(&st);
    rc = (item.pinned = strdup(path)) ? queue_offer(w->queue, &item, e)
                                      : error_memory(e, NULL, "for the pinned %s", pin->checkpoint.name);
    if (rc != QUEUE_ADDED)
        queue_item_release(&item);
    return rc < 0 ? rc : OK;
}

static int open_post(struct evaluation_intake *w, struct error *e)
{
    struct watcher_options options = w->settings->watcher;

    options.pin_directory = w->settings->pin ? w->settings->eval_directory : NULL;
    if (w->greatest_step >= 0)
        options.counted = step_rule_number(&options.source.steps, w->greatest_step);
    return lookout_open(&w->post, w->settings->lookout, w->settings->checkpoint_directory, &options, w->queue, e);
}

int evaluation_intake_begin(struct evaluation_intake *w, struct evaluation_record *record, struct error *e)
{
    int rc;

    w->record = record;
    w->greatest_step = evaluation_record_facts(record).recalled_step;
    if ((rc = pin_recover(w->settings->eval_directory, recall_pin, w, e)) == OK && (rc = open_post(w, e)) == OK)
        rc = evaluation_intake_hear(w, e);
    w->first_look = clock_wall();
    return rc;
}

struct evaluation_intake_facts evaluation_intake_facts(const struct evaluation_intake *w)
{
    return (struct evaluation_intake_facts){ queue_count(w->queue), w->undecided,  queue_pinned_bytes(w->queue),
                                             w->first_look,         w->last_found, w->newest_written,
                                             w->newest_step };
}

/* ---- found again ------------------------------------------------------------------------------------------------- */

int evaluation_intake_changed(struct evaluation_intake *w, const struct queue_item *item, int evaluated, int most)
{
    const struct checkpoint_identity *c = &item->checkpoint;
    struct watcher *watcher = lookout_hold(w->post);
    int times = watcher_look_again(watcher, c->name, evaluated);

    if (times >= most) {
        watcher_undisturbed(watcher, c->name);
    } else if (times >= 0) {
        watcher_uncount(watcher, c->step);
        queue_forget(w->queue, c->name, c->digest);
        if (item->pinned) /* before anybody looks, who might pin it in the same place */
            pin_remove(item->pinned);
    }
    lookout_release(w->post);
    return times;
}

void evaluation_intake_undisturbed(struct evaluation_intake *w, const char *name)
{
    watcher_undisturbed(lookout_hold(w->post), name);
    lookout_release(w->post);
}

void evaluation_intake_find_again(struct evaluation_intake *w, const struct queue_item *item)
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

void evaluation_intake_forgotten(struct evaluation_intake *w, const char *name)
{
    watcher_find_again(lookout_hold(w->post), name);
    lookout_release(w->post);
}

static int lost_pin(const struct queue_item *item)
{
    return item->pinned && !item->opened && access(item->pinned, F_OK) < 0;
}

void evaluation_intake_find_lost(struct evaluation_intake *w)
{
    struct queue_item item;

    while (queue_take_if(w->queue, lost_pin, &item)) {
        evaluation_intake_find_again(w, &item);
        queue_item_release(&item);
    }
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

int evaluation_intake_look(struct evaluation_intake *w, struct error *e)
{
    int rc = watcher_look(lookout_hold(w->post), e);

    lookout_release(w->post);
    return rc;
}

int evaluation_intake_close(struct evaluation_intake *w, int closed, struct error *e)
{
    struct watcher *watcher = lookout_hold(w->post);
    int rc = closed ? watcher_look_last(watcher, e) : OK;

    watcher_set_closed(watcher, closed);
    lookout_release(w->post);
    return rc == OK ? evaluation_intake_hear(w, e) : rc;
}

void evaluation_intake_rest(struct evaluation_intake *w)
{
    lookout_rest(w->post);
}

void evaluation_intake_share_inotify(struct evaluation_intake *w, struct watch_inotify *shared, size_t place)
{
    watcher_share_inotify(lookout_hold(w->post), shared, place);
    lookout_release(w->post);
}

void evaluation_intake_look_soon(struct evaluation_intake *w)
{
    watcher_look_soon(lookout_hold(w->post));
    lookout_release(w->post);
}
