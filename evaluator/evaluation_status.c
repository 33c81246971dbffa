#include "evaluator/evaluation_status.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "evaluator/record/evaluation_estimate.h"
#include "evaluator/record/ledger.h"
#include "evaluator/watch/checkpoint_listing.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* while the ledger is read */
struct gathered {
    struct evaluation_status *status;
    /* the newest done ones, in a ring */
    struct recent {
        double wall_time, seconds, written;
        int64_t step;
    } recent[STATUS_RATE_OVER];
    size_t recent_count;
    /* candidates for the best: only lines that were a best, since there may be many with metrics */
    struct candidate {
        struct checkpoint_identity checkpoint;
        double value;
    } best;
    struct outcomes outcomes;
    char **names; /* in the ledger */
    size_t name_count, name_capacity;
};

const char *evaluation_status_state(const struct evaluation_status *s)
{
    switch (s->holder) {
    case LOCK_ALIVE: return "running";
    case LOCK_ENDED: return "ended";
    case LOCK_DEAD: return "died";
    case LOCK_ELSEWHERE: return "elsewhere";
    case LOCK_NONE: break;
    }
    return "unknown";
}

/* A line gives the best value so far, its own included: if that is its own value, and differs from the one before, this
 * checkpoint is the best from then on. */
static void note_best(struct gathered *g, const struct ledger_record *r)
{
    struct evaluation_status *s = g->status;

    for (size_t i = 0; i < r->metrics.count; i++) {
        const struct evaluation_metric *best = &r->metrics.items[i];
        const char *name = best->name + strlen(EVALUATION_BEST);
        double own;

        if (strncmp(best->name, EVALUATION_BEST, strlen(EVALUATION_BEST)) || isnan(best->value) ||
            !evaluation_metrics_find(&r->metrics, name))
            continue;
        own = evaluation_metrics_value(&r->metrics, name);
        if (r->status == LEDGER_DONE && own == best->value &&
            (!s->has_best || strcmp(s->best_metric, name) || s->best_value != own)) {
            g->best.checkpoint = r->checkpoint;
            g->best.value = own;
        }
        s->has_best = 1;
        s->best_value = best->value;
        snprintf(s->best_metric, sizeof s->best_metric, "%s", name);
        return;
    }
}

static int note_name(struct gathered *g, const char *name, struct error *e)
{
    if (!ARRAY_ROOM(g->names, g->name_capacity, g->name_count + 1))
        return error_memory(e, NULL, "for the names in the ledger");
    if (!(g->names[g->name_count] = strdup(name)))
        return error_memory(e, NULL, "for the names in the ledger");
    g->name_count++;
    return OK;
}

static int take_line(void *context, const struct ledger_record *r, struct error *e)
{
    struct gathered *g = context;
    struct evaluation_status *s = g->status;

    if (r->status == LEDGER_UNTRIED) /* still waits */
        return OK;
    if (r->status == LEDGER_DONE) {
        s->done++;
        g->recent[g->recent_count++ % STATUS_RATE_OVER] = (struct recent){ r->wall_time, r->seconds,
                                                                           r->started - r->lag, r->checkpoint.step };
    } else {
        snprintf(s->last_reason, sizeof s->last_reason, "%s", r->reason);
    }
    note_best(g, r);
    s->last = r->checkpoint;
    s->last_time = r->wall_time;
    return outcomes_note(&g->outcomes, r, e) == OK ? note_name(g, r->checkpoint.name, e) : ERR_NOMEM;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Counts checkpoints in the directory that are not in the ledger. */
static void count_queued(struct gathered *g)
{
    struct evaluation_status *s = g->status;
    const char *directory = s->lock.checkpoint_directory;
    const struct checkpoint_source_options wanted = { .pattern = *s->lock.pattern ? s->lock.pattern : NULL,
                                                      .step_from = *s->lock.step_from ? s->lock.step_from : NULL,
                                                      .step_scale = s->lock.step_scale,
                                                      .step_offset = s->lock.step_offset };
    struct checkpoint_source source;
    struct checkpoint_listing rows = { 0 };
    double youngest = INFINITY;
    int fd;

    if (!*directory || checkpoint_source_init(&source, &wanted, NULL) != OK || source.steps.from != STEP_FROM_NAME ||
        (fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return;
    if (checkpoint_listing_read(&rows, &source, directory, fd, NULL, 0, clock_wall(), NULL) == OK) {
        s->queued = 0;
        if (g->name_count)
            qsort(g->names, g->name_count, sizeof *g->names, compare_names);
        for (size_t i = 0; i < rows.count; i++) {
            s->queued += !g->name_count ||
                         !bsearch(&rows.items[i].name, g->names, g->name_count, sizeof *g->names, compare_names);
            if (rows.items[i].age <= youngest) {
                youngest = rows.items[i].age;
                s->newest_step = rows.items[i].step;
            }
        }
    }
    checkpoint_listing_release(&rows);
    close(fd);
}

/* Oldest and newest of the recent ones; returns how many there are. */
static size_t recent_ends(const struct gathered *g, struct recent *first, struct recent *last)
{
    const size_t n = g->recent_count < STATUS_RATE_OVER ? g->recent_count : STATUS_RATE_OVER;

    if (n) {
        *first = g->recent[g->recent_count < STATUS_RATE_OVER ? 0 : g->recent_count % STATUS_RATE_OVER];
        *last = g->recent[(g->recent_count - 1) % STATUS_RATE_OVER];
    }
    return n;
}

/* A failed training may be restarted, so it is not over. */
static int training_over(const struct evaluation_status *s)
{
    return s->has_training && (!strcmp(s->training.state, "finished") || !strcmp(s->training.state, "stopped"));
}

static void estimate(struct gathered *g, double now)
{
    struct evaluation_status *s = g->status;
    struct evaluation_facts f = { .waiting = (double)(s->queued > 0 ? s->queued : 0),
                                  .newest_step = s->newest_step,
                                  .newest_age = -1,
                                  .training_over = training_over(s) };
    struct recent first = { .step = -1 }, last = { .step = -1 };
    const size_t n = recent_ends(g, &first, &last);
    double took = 0;

    for (size_t i = 0; i < n; i++)
        took += g->recent[i].seconds;
    s->each = n ? took / (double)n : 0;
    if (n > 1 && last.wall_time > first.wall_time)
        s->rate = (double)(n - 1) * 3600 / (last.wall_time - first.wall_time);
    s->target = s->has_work && s->work.until_step >= 0         ? s->work.until_step
                : s->has_training && s->training.max_steps > 0 ? s->training.max_steps
                                                               : -1;
    if (s->has_work)
        f.waiting += (double)s->work.in_hand_count;
    if (n)
        f.newest_age = now - last.written;
    if (n > 1 && last.step > first.step && last.written > first.written &&
        !(s->has_training && !strcmp(s->training.state, "failed"))) {
        f.steps_per_second = (double)(last.step - first.step) / (last.written - first.written);
        f.steps_between = (double)(last.step - first.step) / (double)(n - 1);
    }
    f.each = s->each;
    f.rate = s->rate / 3600;
    f.last_step = s->target;
    s->seconds_left = s->holder == LOCK_ALIVE ? evaluation_estimate(&f) : -1;
}

static void status_finish(struct gathered *g, double now)
{
    struct evaluation_status *s = g->status;
    struct recent first, last = { .step = -1 };

    if (s->has_best && g->best.value == s->best_value)
        s->best = g->best.checkpoint;
    s->failed = outcomes_count(&g->outcomes, LEDGER_FAILED);
    s->gone = outcomes_count(&g->outcomes, LEDGER_GONE);
    if (!s->failed && !s->gone)
        *s->last_reason = '\0';
    s->queued = s->newest_step = -1;
    if (s->has_work) {
        s->queued = s->work.queued;
        s->newest_step = s->work.newest_step;
    } else {
        count_queued(g);
    }
    recent_ends(g, &first, &last);
    s->behind = -1;
    if (s->newest_step >= 0 && last.step >= 0)
        s->behind = s->newest_step > last.step ? s->newest_step - last.step : 0;
    estimate(g, now);
}

int evaluation_status_read(const char *eval_directory, double now, struct evaluation_status *out, struct error *e)
{
    struct gathered g = { .status = out, .best.checkpoint.step = -1 };
    char path[PATH_MAX], ledger[PATH_MAX];
    int rc;

    memset(out, 0, sizeof *out);
    out->last.step = out->best.step = -1;
    if ((rc = file_join(path, sizeof path, eval_directory, "evaluator.lock", e)) != OK ||
        (rc = file_join(ledger, sizeof ledger, eval_directory, "evaluations.jsonl", e)) != OK)
        return rc;
    out->holder = evaluation_lock_read(path, &out->lock);
    if (out->holder == LOCK_NONE) {
        memset(&out->lock, 0, sizeof out->lock);
        if (access(ledger, F_OK) < 0)
            return error_system(e, "%s: no ledger of an evaluator", ledger);
    }
    outcomes_init(&g.outcomes, *out->lock.step_from != '\0');
    out->has_work = (out->holder == LOCK_ALIVE || out->holder == LOCK_ELSEWHERE) &&
                    evaluation_work_read(eval_directory, &out->work) && out->work.pid == out->lock.process.pid;
    out->has_training = *out->lock.checkpoint_directory &&
                        training_state_read(out->lock.checkpoint_directory, &out->training, NULL) == 1;
    if ((rc = ledger_read(ledger, take_line, &g, &out->odd_lines, e)) == OK)
        status_finish(&g, now);
    for (size_t i = 0; i < g.name_count; i++)
        free(g.names[i]);
    free(g.names);
    outcomes_release(&g.outcomes);
    return rc;
}
