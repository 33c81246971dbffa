#include "evaluator/evaluation_status.h"

#include "base/file.h"
#include "evaluator/checkpoint_source.h"
#include "evaluator/outcomes.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gathered { /* while the ledger is read */
    struct evaluation_status *status;
    double recent[STATUS_RATE_OVER]; /* wall times of the newest done ones, in a ring */
    size_t recent_count;
    struct candidate { /* for the best: all lines with metrics would be many, so only those that were a best */
        int64_t step;
        double value;
        char checkpoint[LEDGER_NAME_MAX];
    } best;
    struct outcomes outcomes;
    char **names; /* in the ledger */
    size_t name_count, name_capacity;
};

const char *evaluation_status_state(const struct evaluation_status *s)
{
    switch (s->holder) {
    case LOCK_ALIVE:
        return "running";
    case LOCK_ENDED:
        return "ended";
    case LOCK_DEAD:
        return "died";
    case LOCK_ELSEWHERE:
        return "elsewhere";
    case LOCK_NONE:
        break;
    }
    return "unknown";
}

/* A line says what the best was then, itself included: where that is its own value, and another than before, it is the
 * best from then on. */
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
            g->best.step = r->step;
            g->best.value = own;
            snprintf(g->best.checkpoint, sizeof g->best.checkpoint, "%s", r->checkpoint);
        }
        s->has_best = 1;
        s->best_value = best->value;
        snprintf(s->best_metric, sizeof s->best_metric, "%s", name);
        return;
    }
}

static int note_name(struct gathered *g, const char *name, struct error *e)
{
    if (g->name_count == g->name_capacity) {
        size_t capacity = g->name_capacity ? 2 * g->name_capacity : 64;
        char **grown = realloc(g->names, capacity * sizeof *grown);

        if (!grown)
            return error_set(e, ERR_NOMEM, "no memory for the names in the ledger");
        g->names = grown;
        g->name_capacity = capacity;
    }
    if (!(g->names[g->name_count] = strdup(name)))
        return error_set(e, ERR_NOMEM, "no memory for the names in the ledger");
    g->name_count++;
    return OK;
}

static int take_line(void *context, const struct ledger_record *r, struct error *e)
{
    struct gathered *g = context;
    struct evaluation_status *s = g->status;

    if (r->status == LEDGER_DONE) {
        s->done++;
        g->recent[g->recent_count++ % STATUS_RATE_OVER] = r->wall_time;
    } else {
        snprintf(s->last_reason, sizeof s->last_reason, "%s", r->reason);
    }
    note_best(g, r);
    s->last_step = r->step;
    s->last_time = r->wall_time;
    snprintf(s->last_checkpoint, sizeof s->last_checkpoint, "%s", r->checkpoint);
    return outcomes_note(&g->outcomes, r, e) == OK ? note_name(g, r->checkpoint, e) : ERR_NOMEM;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void count_queued(struct gathered *g)
{
    struct evaluation_status *s = g->status;
    const char *directory = s->lock.checkpoint_directory;
    const struct checkpoint_source_options wanted = { .pattern = *s->lock.pattern ? s->lock.pattern : NULL,
                                                      .step_from = *s->lock.step_from ? s->lock.step_from : NULL,
                                                      .step_scale = s->lock.step_scale,
                                                      .step_offset = s->lock.step_offset };
    struct checkpoint_source source;
    struct checkpoint_rows rows = { NULL, 0, 0 };
    int fd;

    s->queued = -1;
    if (!*directory || checkpoint_source_init(&source, &wanted, NULL) != OK ||
        (fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return;
    if (checkpoint_source_list(&source, directory, fd, NULL, 0, &rows, NULL) == OK) {
        s->queued = 0;
        if (g->name_count)
            qsort(g->names, g->name_count, sizeof *g->names, compare_names);
        for (size_t i = 0; i < rows.count; i++)
            s->queued += !g->name_count ||
                         !bsearch(&rows.items[i].name, g->names, g->name_count, sizeof *g->names, compare_names);
    }
    checkpoint_rows_release(&rows);
    close(fd);
}

static void finish(struct gathered *g)
{
    struct evaluation_status *s = g->status;
    size_t n = g->recent_count < STATUS_RATE_OVER ? g->recent_count : STATUS_RATE_OVER;

    if (n > 1) {
        double first = g->recent[g->recent_count < STATUS_RATE_OVER ? 0 : g->recent_count % STATUS_RATE_OVER];
        double took = g->recent[(g->recent_count - 1) % STATUS_RATE_OVER] - first;

        s->rate = took > 0 ? (double)(n - 1) * 3600 / took : 0;
    }
    s->best_step = -1;
    if (s->has_best && g->best.value == s->best_value) {
        s->best_step = g->best.step;
        snprintf(s->best_checkpoint, sizeof s->best_checkpoint, "%s", g->best.checkpoint);
    }
    s->failed = outcomes_count(&g->outcomes, LEDGER_FAILED);
    s->gone = outcomes_count(&g->outcomes, LEDGER_GONE);
    if (!s->failed && !s->gone)
        *s->last_reason = '\0';
    count_queued(g);
}

int evaluation_status_read(const char *eval_directory, struct evaluation_status *out, struct error *e)
{
    struct gathered g = { .status = out, .best = { .step = -1 } };
    char path[PATH_MAX], ledger[PATH_MAX];
    int rc;

    memset(out, 0, sizeof *out);
    out->last_step = out->best_step = -1;
    if ((rc = file_join(path, sizeof path, eval_directory, "evaluator.lock", e)) != OK ||
        (rc = file_join(ledger, sizeof ledger, eval_directory, "evaluations.jsonl", e)) != OK)
        return rc;
    out->holder = evaluation_lock_read(path, &out->lock);
    if (out->holder == LOCK_NONE) {
        memset(&out->lock, 0, sizeof out->lock);
        if (access(ledger, F_OK) < 0)
            return error_system(e, "%s: no ledger of an evaluator", ledger);
    }
    g.outcomes.by_step = *out->lock.step_from != '\0';
    if ((rc = ledger_read(ledger, take_line, &g, &out->odd_lines, e)) == OK)
        finish(&g);
    for (size_t i = 0; i < g.name_count; i++)
        free(g.names[i]);
    free(g.names);
    outcomes_release(&g.outcomes);
    return rc;
}
