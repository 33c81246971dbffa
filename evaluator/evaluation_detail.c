#include "evaluator/evaluation_detail.h"

#include "base/buffer.h"
#include "evaluator/confusion_image.h"
#include "evaluator/metric_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 10, TAG_MAX = 160, MARGINS = 3 }; /* columns beside the matrix: label, precision, recall */

int evaluation_detail_new(struct evaluation_detail **out, unsigned metrics, const struct classification *counts,
                          const char *const *names, struct error *e)
{
    struct evaluation_detail *d = calloc(1, sizeof *d);
    int rc;

    *out = NULL;
    if (!d)
        return error_set(e, ERR_NOMEM, "no memory for the counts of an evaluation");
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

/* A name as Markdown shows it: what could be taken for markup gets a backslash. */
static void put_name(struct buffer *b, const char *name)
{
    for (; *name; name++) {
        if (strchr("\\`*_{}[]()#+!|<>~", *name))
            buffer_append_byte(b, '\\');
        buffer_append_byte(b, *name);
    }
    buffer_append_byte(b, '\0');
}

static void put_share(struct buffer *b, double share)
{
    if (isnan(share))
        buffer_append_text(b, "-");
    else
        buffer_format(b, "%.4f", share);
    buffer_append_byte(b, '\0');
}

/* All cells row by row, each with a NUL at its end. */
static void put_cells(const struct evaluation_detail *d, struct buffer *b)
{
    const struct classification *c = &d->counts;

    put_name(b, "label / predicted");
    for (int k = 0; k < c->classes; k++)
        put_name(b, d->names[k]);
    put_name(b, "precision");
    put_name(b, "recall");
    for (int i = 0; i < c->classes; i++) {
        put_name(b, d->names[i]);
        for (int k = 0; k < c->classes; k++) {
            buffer_format(b, "%lld", (long long)c->confusion[(size_t)i * (size_t)c->classes + (size_t)k]);
            buffer_append_byte(b, '\0');
        }
        put_share(b, classification_precision(c, i));
        put_share(b, classification_recall(c, i));
    }
}

static int write_table(const struct evaluation_detail *d, struct eventlog_writer *writer, int64_t step,
                       double wall_time, struct eventlog_error *error)
{
    const size_t rows = (size_t)d->counts.classes + 1, columns = (size_t)d->counts.classes + MARGINS;
    const char **cells = malloc(rows * columns * sizeof *cells), *text;
    struct buffer b = BUFFER_EMPTY;
    int rc;

    put_cells(d, &b);
    if (!cells || !buffer_ok(&b)) {
        rc = no_memory(error);
    } else {
        text = buffer_text(&b);
        for (size_t i = 0; i < rows * columns; i++, text += strlen(text) + 1)
            cells[i] = text;
        rc = eventlog_writer_text_table(writer, "confusion_matrix/table", step, wall_time, cells, rows, columns, NULL,
                                        error);
    }
    buffer_release(&b);
    free(cells);
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
