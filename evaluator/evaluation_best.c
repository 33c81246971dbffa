#include "evaluator/evaluation_best.h"

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/stop_file.h"
#include "evaluator/best_directory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evaluation_best {
    struct evaluation_best_options options;
    struct best_directory *directory; /* NULL: not kept */
    int stop_there;                   /* the stop file is there, ours or another's */
};

int evaluation_best_open(struct evaluation_best **out, const struct evaluation_best_options *options, struct error *e)
{
    struct evaluation_best *b = calloc(1, sizeof *b);
    char path[PATH_MAX];
    int rc = OK;

    *out = NULL;
    if (!b)
        return error_set(e, ERR_NOMEM, "%s: no memory for the best checkpoint", options->eval_directory);
    b->options = *options;
    if (options->keep && (rc = file_join(path, sizeof path, options->eval_directory, "best", e)) == OK)
        rc = best_directory_open(&b->directory, path, e);
    if (rc == OK)
        *out = b;
    else
        free(b);
    return rc;
}

void evaluation_best_close(struct evaluation_best *b)
{
    if (!b)
        return;
    best_directory_close(b->directory);
    free(b);
}

static struct best_checkpoint named(const struct evaluation_best *b, const char *name, uint64_t digest)
{
    return (struct best_checkpoint){ b->options.checkpoint_directory, name, digest };
}

/* OK, EVALUATION_BEST_STOP or an error. */
static int lose_patience(struct evaluation_best *b, const struct ledger_summary *s, struct error *e)
{
    struct stop_file stop = { .best_value = s->best_value, .best_step = s->best_step, .step = s->highest_step,
                              .written = clock_wall() };
    struct stop_file before;
    char delta[64] = "";
    int rc;

    if (!b->options.patience || b->stop_there || !s->has_best || s->since_best < (size_t)b->options.patience)
        return OK;
    if (stop_file_read(b->options.checkpoint_directory, &before, NULL) == 1) {
        b->stop_there = 1;
        return OK;
    }
    if (s->rule.delta > 0)
        snprintf(delta, sizeof delta, " by more than %g", s->rule.delta);
    snprintf(stop.reason, sizeof stop.reason, "%.200s did not get %s%s in %zu evaluations", s->rule.metric,
             s->rule.minimum ? "lower" : "higher", delta, s->since_best);
    snprintf(stop.metric, sizeof stop.metric, "%s", s->rule.metric);
    snprintf(stop.best_checkpoint, sizeof stop.best_checkpoint, "%s", s->best_checkpoint);
    if ((rc = stop_file_write(b->options.checkpoint_directory, &stop, e)) != OK)
        return rc;
    b->stop_there = 1;
    error_set(e, OK, "%s", stop.reason);
    return EVALUATION_BEST_STOP;
}

int evaluation_best_resume(struct evaluation_best *b, const struct ledger_summary *s, struct error *e)
{
    int rc = OK;

    if (!b)
        return OK;
    if (b->directory) {
        const struct best_checkpoint best = named(b, s->best_checkpoint, s->best_digest);
        struct error why = { 0 };

        if ((rc = best_directory_recover(b->directory, s->has_best ? &best : NULL, &why)) != OK)
            error_set(e, rc, "%s is the best, but cannot be kept: %.300s", s->best_checkpoint, why.message);
    }
    return rc == OK ? lose_patience(b, s, e) : rc;
}

void evaluation_best_before(struct evaluation_best *b, const char *directory, const char *name, uint64_t digest)
{
    if (b && b->directory) {
        const struct best_checkpoint c = { directory, name, digest };

        best_directory_reserve(b->directory, &c);
    }
}

void evaluation_best_forget(struct evaluation_best *b, const char *name, uint64_t digest)
{
    if (b && b->directory) {
        const struct best_checkpoint c = named(b, name, digest);

        best_directory_drop(b->directory, &c);
    }
}

int evaluation_best_after(struct evaluation_best *b, const struct ledger_record *r, const struct ledger_summary *s,
                          struct error *e)
{
    int rc = OK;

    if (!b)
        return OK;
    if (b->directory && r->status == LEDGER_DONE && s->has_best && !s->since_best && s->best_step == r->step &&
        s->best_digest == r->digest && !strcmp(s->best_checkpoint, r->checkpoint)) {
        const struct best_checkpoint best = named(b, r->checkpoint, r->digest);
        struct error why = { 0 };

        if ((rc = best_directory_promote(b->directory, &best, &why)) != OK)
            error_set(e, rc, "%s is the best, but cannot be kept: %.300s", r->checkpoint, why.message);
    } else {
        evaluation_best_forget(b, r->checkpoint, r->digest);
    }
    return rc == OK ? lose_patience(b, s, e) : rc;
}
