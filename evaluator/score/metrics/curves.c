/* curves: pr_curve/NAME, the precision-recall curve of the class NAME against all others. */
#include "evaluator/score/metrics/curves.h"

#include "evaluator/score/classification.h"
#include "evaluator/score/metrics/metric.h"

#include <math.h>
#include <stdio.h>

enum { T = CURVES_THRESHOLDS };

/* (2, classes, T): examples of others and of the class, by the highest threshold that their softmax reaches. */
static size_t curves_cells(int classes)
{
    return 2 * (size_t)classes * T;
}

static size_t row(int of_class, int classes, int class)
{
    return ((size_t)of_class * (size_t)classes + (size_t) class) * T;
}

static void curves_count(const struct metric_example *x, int64_t *cells)
{
    for (int k = 0; k < x->classes; k++) {
        const float p = (float)x->softmax[k]; /* NaN goes to the lowest bucket: positive only at threshold 0 */
        const size_t bucket = p > 0 ? (size_t)floorf(p * (float)(T - 1)) : 0;

        cells[row(k == x->label, x->classes, k) + bucket]++;
    }
}

void curves_counts(const int64_t *cells, int classes, int class, double *counts)
{
    const int64_t *positives = cells + row(1, classes, class), *negatives = cells + row(0, classes, class);
    int64_t all_positives = 0, all_negatives = 0, true_positives = 0, false_positives = 0;

    for (size_t j = 0; j < T; j++) {
        all_positives += positives[j];
        all_negatives += negatives[j];
    }
    for (size_t j = T; j-- > 0;) {
        true_positives += positives[j];
        false_positives += negatives[j];
        counts[j] = (double)true_positives;
        counts[T + j] = (double)false_positives;
        counts[2 * T + j] = (double)(all_negatives - false_positives);
        counts[3 * T + j] = (double)(all_positives - true_positives);
    }
}

static int curves_write(const struct classification *c, const int64_t *cells, const char *const *names,
                        struct eventlog_writer *writer, int64_t step, double wall_time, struct eventlog_error *error)
{
    double counts[4 * T];
    const struct eventlog_pr_counts curve = {
        .true_positives = counts,
        .false_positives = counts + T,
        .true_negatives = counts + 2 * T,
        .false_negatives = counts + 3 * T,
    };
    int rc = EVENTLOG_OK;

    for (int k = 0; rc == EVENTLOG_OK && k < c->classes; k++) {
        char tag[EVALUATION_NAME_MAX];

        curves_counts(cells, c->classes, k, counts);
        snprintf(tag, sizeof tag, "pr_curve/%s", names[k]);
        rc = eventlog_writer_pr_curve_counts(writer, tag, step, wall_time, &curve, T, NULL, error);
    }
    return rc;
}

const struct metric metric_curves = {
    .of_classes = 1,
    .cells = curves_cells,
    .count = curves_count,
    .write = curves_write,
};
