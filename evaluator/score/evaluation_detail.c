#include "evaluator/score/evaluation_detail.h"

#include "evaluator/score/captioning.h"

#include <stdlib.h>

enum { FIRST = 10 };

int evaluation_detail_new(struct evaluation_detail **out, unsigned metrics, const struct classification *counts,
                          const char *const *names, struct error *e)
{
    struct evaluation_detail *d = calloc(1, sizeof *d);
    int rc;

    *out = NULL;
    if (!d)
        return error_memory(e, NULL, "for the counts of an evaluation");
    d->metrics = metric_written(metrics);
    d->names = names;
    rc = classification_init(&d->counts, counts->classes, counts->ties_are_correct, counts->metrics, e);
    if (rc != OK) {
        free(d);
        return rc;
    }
    classification_merge(&d->counts, counts);
    *out = d;
    return OK;
}

void evaluation_detail_free(struct evaluation_detail *d)
{
    if (!d)
        return;
    classification_release(&d->counts);
    caption_samples_free(d->captions);
    free(d);
}

int evaluation_detail_write(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                            double wall_time, struct eventlog_error *error)
{
    int rc = EVENTLOG_OK;

    for (size_t i = 0; rc == EVENTLOG_OK && i < METRIC_COUNT; i++)
        if (d->metrics & 1u << i)
            rc = metric_table[i]->write(&d->counts, d->counts.cells[i], d->names, writer, step, wall_time, error);
    if (rc == EVENTLOG_OK && d->captions)
        rc = caption_samples_write(d->captions, writer, step, wall_time, error);
    return rc;
}

int evaluation_detail_wanted(int64_t number, int64_t every)
{
    int64_t gap = every > 0 ? every : 1;

    while (every <= 0 && number / gap >= 2 * FIRST)
        gap *= 2;
    return number % gap == 0;
}
