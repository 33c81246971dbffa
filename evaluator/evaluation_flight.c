#include "evaluator/evaluation_flight.h"

#include "base/clock.h"
#include "evaluator/watch/checkpoint_source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_TRIES = 3 };

struct evaluation_flight {
    enum evaluation_flight_state state;
    double begin; /* monotonic */
    struct queue_item item;
    char *directory;              /* owned */
    char *path, *witness;         /* used by job; owned */
    struct runner_job job;        /* points into this struct */
    struct evaluation evaluation; /* once landed */
    struct ledger_record record;  /* owns its metrics, which include best_NAME once prepared */
};

void evaluation_flight_free(struct evaluation_flight *f)
{
    if (!f)
        return;
    queue_item_release(&f->item);
    evaluation_release(&f->evaluation);
    ledger_record_release(&f->record);
    free(f->directory);
    free(f->path);
    free(f->witness);
    free(f);
}

struct queue_item *evaluation_flight_item(struct evaluation_flight *f)
{
    return &f->item;
}

const struct runner_job *evaluation_flight_job(const struct evaluation_flight *f)
{
    return &f->job;
}

struct ledger_record *evaluation_flight_record(struct evaluation_flight *f)
{
    return &f->record;
}

const struct evaluation_detail *evaluation_flight_detail(const struct evaluation_flight *f)
{
    return f->evaluation.detail;
}

const char *evaluation_flight_directory(const struct evaluation_flight *f)
{
    return f->directory;
}

enum evaluation_flight_state evaluation_flight_state(const struct evaluation_flight *f)
{
    return f->state;
}

void evaluation_flight_advance(struct evaluation_flight *f, enum evaluation_flight_state state)
{
    f->state = state;
}

static int no_memory(const struct queue_item *item, struct error *e)
{
    return error_memory(e, NULL, "to evaluate %s", item->checkpoint.name);
}

/* A pinned checkpoint is DIRECTORY/NAME as well, in another directory. */
static int set_paths(struct evaluation_flight *f, const struct queue_item *item, const char *directory, struct error *e)
{
    size_t length = item->pinned ? (size_t)(strrchr(item->pinned, '/') - item->pinned) : strlen(directory);
    char witness[PATH_MAX];
    int rc;

    if (!(f->directory = strndup(item->pinned ? item->pinned : directory, length)) ||
        asprintf(&f->path, "%s/%s", f->directory, item->checkpoint.name) < 0) {
        f->path = NULL;
        return no_memory(item, e);
    }
    if ((rc = checkpoint_witness(item->kind, f->path, witness, sizeof witness, e)) != OK)
        return rc;
    return (f->witness = strdup(witness)) ? OK : no_memory(item, e);
}

int evaluation_flight_new(struct evaluation_flight **out, const struct queue_item *item, const char *directory,
                          const char *eval_directory, int64_t index, struct error *e)
{
    struct evaluation_flight *f = calloc(1, sizeof *f);
    int rc;

    *out = NULL;
    if (!f)
        return no_memory(item, e);
    if ((rc = set_paths(f, item, directory, e)) != OK) {
        evaluation_flight_free(f);
        return rc;
    }
    f->item = *item;
    f->evaluation = (struct evaluation){ .examples = -1, .correct = -1 };
    f->job = (struct runner_job){ .checkpoint = &f->item.checkpoint,
                                  .directory = directory,
                                  .path = f->path,
                                  .witness = f->witness,
                                  .eval_directory = eval_directory,
                                  .written = item->written,
                                  .index = index,
                                  .opened = item->opened };
    f->begin = clock_monotonic();
    f->record = (struct ledger_record){ .checkpoint = item->checkpoint, .started = clock_wall() };
    f->record.lag = f->record.started - item->written;
    *out = f;
    return OK;
}

int evaluation_flight_reopen(struct evaluation_flight *f, struct error *e)
{
    int rc;

    if (f->item.opened || !f->item.pinned)
        return OK;
    if ((rc = opened_checkpoint_open(&f->item.opened, f->item.kind, f->item.pinned, e)) == OK)
        f->job.opened = f->item.opened;
    return rc;
}

void evaluation_flight_land(struct evaluation_flight *f, enum runner_state state, struct evaluation *v,
                            const struct error *why)
{
    struct ledger_record *r = &f->record;

    f->state = FLIGHT_LANDED;
    r->seconds = clock_monotonic() - f->begin;
    r->wall_time = clock_wall();
    if (state != RUNNER_DONE) {
        r->status = state == RUNNER_GONE ? LEDGER_GONE : LEDGER_FAILED;
        snprintf(r->reason, sizeof r->reason, "%s", why->message);
        return;
    }
    f->evaluation = *v;
    r->has_metrics = 1;
    r->metrics = f->evaluation.metrics; /* moved: recording adds best_NAME to them */
    f->evaluation.metrics = (struct evaluation_metrics){ NULL, 0, 0 };
    r->correct = v->correct;
    r->examples = v->examples;
    snprintf(r->weights, sizeof r->weights, "%s", evaluation_weights_text(v->weights));
}

static enum evaluation_flight_files unreadable(const struct evaluation_flight *f, const struct error *e)
{
    if (error_is_lack(e) || error_may_pass(e))
        return FLIGHT_FILES_LACK;
    return access(f->witness, F_OK) < 0 ? FLIGHT_FILES_SAME : FLIGHT_FILES_CHANGED;
}

static enum evaluation_flight_files other_files(const struct evaluation_flight *f, uint64_t *digest, struct error *e)
{
    const struct opened_checkpoint *c = f->item.opened;
    enum evaluation_flight_files files = FLIGHT_FILES_CHANGED;
    struct content now;

    for (int tries = 1; content_read(f->path, &now, e) != OK; tries++)
        if (tries == READ_TRIES || !error_may_pass(e)) /* an evaluation is worth more than one look */
            return unreadable(f, e);
    *digest = content_digest(&now);
    if (content_shrank(opened_checkpoint_content(c), &now))
        files = FLIGHT_FILES_GOING;
    else if (opened_checkpoint_digest(c) == f->item.checkpoint.digest &&
             content_only_grew(opened_checkpoint_content(c), &now))
        files = *digest == opened_checkpoint_digest(c) ? FLIGHT_FILES_SAME : FLIGHT_FILES_GREW;
    content_release(&now);
    return files;
}

enum evaluation_flight_files evaluation_flight_files(const struct evaluation_flight *f, uint64_t *digest,
                                                     struct error *e)
{
    struct opened_checkpoint *now;

    *digest = 0;
    if (!f->item.opened)
        return FLIGHT_FILES_SAME;
    if (f->item.kind == CHECKPOINT_OTHER)
        return other_files(f, digest, e);
    if (opened_checkpoint_open(&now, f->item.kind, f->path, e) != OK)
        return unreadable(f, e);
    *digest = opened_checkpoint_digest(now);
    opened_checkpoint_close(now);
    return *digest == f->item.checkpoint.digest ? FLIGHT_FILES_SAME : FLIGHT_FILES_CHANGED;
}
