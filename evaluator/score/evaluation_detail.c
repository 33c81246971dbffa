#include "evaluator/score/evaluation_detail.h"

#include "base/buffer.h"
#include "evaluator/score/confusion_image.h"
#include "evaluator/score/metric_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 10, TAG_MAX = 160 };

int evaluation_detail_new(struct evaluation_detail **out, unsigned metrics, const struct classification *counts,
                          const char *const *names, struct error *e)
{
    struct evaluation_detail *d = calloc(1, sizeof *d);
    int rc;

    *out = NULL;
    if (!d)
        return error_memory(e, NULL, "for the counts of an evaluation");
    d->metrics = metrics;
    d->names = names;
    rc = classification_init(&d->counts, counts->classes, counts->ties_are_correct, counts->thresholds, e);
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
    free(d);
}

static int no_memory(struct eventlog_error *error)
{
    if (error) {
        error->code = EVENTLOG_ERROR_MEMORY;
        error->system = 0;
        snprintf(error->message, sizeof error->message, "no memory for the confusion matrix");
    }
    return EVENTLOG_ERROR_MEMORY;
}

static int write_image(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                       double wall_time, struct eventlog_error *error)
{
    static const struct eventlog_value_options options = {
        .description = "Rows are labels, columns what was predicted; the darker, the larger the share of its row.",
    };
    struct confusion_image image;
    int rc;

    if (confusion_image_draw(&image, d->counts.confusion, d->counts.classes, d->names, NULL) != OK)
        return no_memory(error);
    rc = eventlog_writer_image(writer, "confusion_matrix", step, wall_time, image.pixels, 1, image.height, image.width,
                               3, &options, error);
    confusion_image_release(&image);
    return rc;
}

/* A cell of a row: a name as Markdown shows it, what could be taken for markup behind a backslash. */
static void put_name(struct buffer *b, const char *name)
{
    buffer_append_text(b, "| ");
    for (; *name; name++) {
        if (strchr("\\`*_{}[]()#+!|<>~", *name))
            buffer_append_byte(b, '\\');
        buffer_append_byte(b, *name);
    }
    buffer_append_byte(b, ' ');
}

static void put_share(struct buffer *b, double share)
{
    if (isnan(share))
        buffer_append_text(b, "| - ");
    else
        buffer_format(b, "| %.4f ", share);
}

/* One Markdown text, which every reader of texts takes; a table of texts is an array of two dimensions to them. */
static void put_table(const struct evaluation_detail *d, struct buffer *b)
{
    const struct classification *c = &d->counts;

    put_name(b, "label / predicted");
    for (int k = 0; k < c->classes; k++)
        put_name(b, d->names[k]);
    buffer_append_text(b, "| precision | recall |\n| --- ");
    for (int k = 0; k < c->classes; k++)
        buffer_append_text(b, "| ---: ");
    buffer_append_text(b, "| ---: | ---: |\n");
    for (int i = 0; i < c->classes; i++) {
        put_name(b, d->names[i]);
        for (int k = 0; k < c->classes; k++)
            buffer_format(b, "| %lld ", (long long)c->confusion[(size_t)i * (size_t)c->classes + (size_t)k]);
        put_share(b, classification_precision(c, i));
        put_share(b, classification_recall(c, i));
        buffer_append_text(b, "|\n");
    }
}

static int write_table(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                       double wall_time, struct eventlog_error *error)
{
    struct buffer b = BUFFER_EMPTY;
    int rc;

    put_table(d, &b);
    rc = buffer_ok(&b) ? eventlog_writer_text(writer, "confusion_matrix/table", step, wall_time, buffer_text(&b), NULL,
                                              error)
                       : no_memory(error);
    buffer_release(&b);
    return rc;
}

static int write_curves(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                        double wall_time, struct eventlog_error *error)
{
    const size_t n = (size_t)d->counts.thresholds;
    double *counts = malloc(4 * n * sizeof *counts);
    int rc = counts ? EVENTLOG_OK : no_memory(error);

    for (int k = 0; rc == EVENTLOG_OK && k < d->counts.classes; k++) {
        const struct eventlog_pr_counts curve = {
            .true_positives = counts, .false_positives = counts + n, .true_negatives = counts + 2 * n,
            .false_negatives = counts + 3 * n,
        };
        char tag[TAG_MAX];

        classification_curve(&d->counts, k, counts);
        snprintf(tag, sizeof tag, "pr_curve/%s", d->names[k]);
        rc = eventlog_writer_pr_curve_counts(writer, tag, step, wall_time, &curve, n, NULL, error);
    }
    free(counts);
    return rc;
}

int evaluation_detail_write(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                            double wall_time, struct eventlog_error *error)
{
    int rc = EVENTLOG_OK;

    if (d->metrics & METRIC_CONFUSION && (rc = write_image(d, writer, step, wall_time, error)) == EVENTLOG_OK)
        rc = write_table(d, writer, step, wall_time, error);
    if (rc == EVENTLOG_OK && d->metrics & METRIC_CURVES)
        rc = write_curves(d, writer, step, wall_time, error);
    return rc;
}

int evaluation_detail_wanted(int64_t number, int64_t every)
{
    int64_t gap = every > 0 ? every : 1;

    while (every <= 0 && number / gap >= 2 * FIRST)
        gap *= 2;
    return number % gap == 0;
}
