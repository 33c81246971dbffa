#include "evaluator/keep/evaluation_best.h"

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/directory/stop_file.h"
#include "evaluator/keep/best_directory.h"
#include "evaluator/keep/best_list.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct evaluation_best {
    struct evaluation_best_options options;
    struct best_directory *directory; /* NULL: not kept */
    struct best_list list;
    struct best_checkpoint *wanted; /* (keep) to be in the directory, best first */
    char (*names)[NAME_MAX + 1];    /* (keep) their names there */
    int stop_there;                 /* the stop file exists, ours or not */
};

static int open_directory(struct evaluation_best *b, struct error *e)
{
    const struct evaluation_best_options *o = &b->options;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, o->eval_directory, "best", e);

    b->wanted = calloc(o->keep, sizeof *b->wanted);
    b->names = calloc(o->keep, sizeof *b->names);
    if (!b->wanted || !b->names)
        return error_memory(e, o->eval_directory, "for the best checkpoints");
    if (rc == OK && (rc = best_list_init(&b->list, o->keep, o->rule.minimum, o->volatile_names, e)) == OK)
        rc = best_directory_open(&b->directory, path, e);
    return rc;
}

int evaluation_best_open(struct evaluation_best **out, const struct evaluation_best_options *options, struct error *e)
{
    struct evaluation_best *b = calloc(1, sizeof *b);
    int rc = OK;

    *out = NULL;
    if (!b)
        return error_memory(e, options->eval_directory, "for the best checkpoint");
    b->options = *options;
    if (options->keep && (rc = open_directory(b, e)) != OK)
        evaluation_best_close(b);
    else
        *out = b;
    return rc;
}

void evaluation_best_close(struct evaluation_best *b)
{
    if (!b)
        return;
    best_directory_close(b->directory);
    best_list_release(&b->list);
    free(b->wanted);
    free(b->names);
    free(b);
}

static struct best_checkpoint found(const struct evaluation_best *b, const struct checkpoint_identity *checkpoint)
{
    return (struct best_checkpoint){ .directory = b->options.checkpoint_directory,
                                     .checkpoint = *checkpoint,
                                     .volatile_name = b->options.volatile_names };
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

void evaluation_best_recall(struct evaluation_best *b, const struct ledger_record *r)
{
    struct best_entry entry = { .checkpoint = r->checkpoint };

    if (!b || !b->directory || r->status != LEDGER_DONE)
        return;
    entry.value = evaluation_metrics_value(&r->metrics, b->options.rule.metric);
    best_list_add(&b->list, &entry);
}

/* The best one is the ledger's, which depends on --best-delta; the others are ordered by their values. */
static size_t choose(struct evaluation_best *b, const struct ledger_summary *s)
{
    const struct best_entry *entry;
    size_t count = 0;

    if (!s->has_best)
        return 0;
    b->wanted[count++] = found(b, &s->best);
    for (size_t i = 0; (entry = best_list_at(&b->list, i)) && count < b->options.keep; i++)
        if (!best_list_same(&b->list, &entry->checkpoint, &s->best))
            b->wanted[count++] = found(b, &entry->checkpoint);
    for (size_t i = 0; b->options.volatile_names && b->options.keep > 1 && i < count; i++) {
        const struct checkpoint_identity *c = &b->wanted[i].checkpoint;

        snprintf(b->names[i], sizeof b->names[i], "%lld-%.200s", (long long)c->step, c->name);
        b->wanted[i].kept = b->names[i];
    }
    return count;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

/* OK, EVALUATION_BEST_STOP or an error. */
static int lose_patience(struct evaluation_best *b, const struct ledger_summary *s, struct error *e)
{
    struct stop_file stop = {
        .best_value = s->best_value, .best_step = s->best.step, .step = s->highest_step, .written = clock_wall()
    };
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
    snprintf(stop.best_checkpoint, sizeof stop.best_checkpoint, "%s", s->best.name);
    if ((rc = stop_file_write(b->options.checkpoint_directory, &stop, e)) != OK)
        return rc;
    b->stop_there = 1;
    error_set(e, OK, "%s", stop.reason);
    return EVALUATION_BEST_STOP;
}

int evaluation_best_kept(struct evaluation_best *b, const struct ledger_summary *s, char *out, size_t size)
{
    char name[NAME_MAX + 8], directory[PATH_MAX], witness[PATH_MAX];

    if (!b || !b->directory || !choose(b, s))
        return 0;
    snprintf(name, sizeof name, "%s", b->wanted[0].kept ? b->wanted[0].kept : b->wanted[0].checkpoint.name);
    if (file_join(directory, sizeof directory, b->options.eval_directory, "best", NULL) != OK ||
        file_join(out, size, directory, name, NULL) != OK)
        return 0;
    return access(out, F_OK) == 0 ||
           (snprintf(witness, sizeof witness, "%s.index", out) < (int)sizeof witness && access(witness, F_OK) == 0);
}

int evaluation_best_resume(struct evaluation_best *b, const struct ledger_summary *s, struct error *e)
{
    int rc = OK;

    if (!b)
        return OK;
    if (b->directory) {
        const size_t count = choose(b, s);
        struct error why = { 0 };

        if ((rc = best_directory_recover(b->directory, b->wanted, count, &why)) != OK)
            error_set(e, rc, "%s is the best, but cannot be kept: %.300s", s->best.name, why.message);
    }
    return rc == OK ? lose_patience(b, s, e) : rc;
}

void evaluation_best_before(struct evaluation_best *b, const char *directory, int pinned,
                            const struct checkpoint_identity *checkpoint)
{
    struct best_checkpoint c;

    if (!b || !b->directory || (b->options.volatile_names && !pinned))
        return; /* a link would change when the file is overwritten */
    c = found(b, checkpoint);
    c.directory = directory;
    best_directory_reserve(b->directory, &c);
}

void evaluation_best_forget(struct evaluation_best *b, const struct checkpoint_identity *checkpoint)
{
    if (b && b->directory) {
        const struct best_checkpoint c = found(b, checkpoint);

        best_directory_drop(b->directory, &c);
    }
}

int evaluation_best_after(struct evaluation_best *b, const struct ledger_record *r, const struct ledger_summary *s,
                          struct error *e)
{
    struct error why = { 0 };
    size_t count = 0, i = 0;
    int rc = OK;

    if (!b)
        return OK;
    evaluation_best_recall(b, r);
    if (b->directory && r->status == LEDGER_DONE)
        count = choose(b, s);
    while (i < count && !checkpoint_identity_same(&b->wanted[i].checkpoint, &r->checkpoint))
        i++;
    if (i == count)
        evaluation_best_forget(b, &r->checkpoint);
    else if ((rc = best_directory_promote(b->directory, b->wanted, count, i, &why)) != OK)
        error_set(e, rc, "%s is %s, but cannot be kept: %.300s", r->checkpoint.name, i ? "among the best" : "the best",
                  why.message);
    return rc == OK ? lose_patience(b, s, e) : rc;
}
