#include "eventlog/write/event_writer.h"

#include "base/bytes.h"
#include "eventlog/eventlog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value of the pr_curves plugin: DT_FLOAT [6,T], rows as below, column j for the threshold j/(T-1). */
enum { DEFAULT_THRESHOLDS = 201, MOST_THRESHOLDS = 1 << 20, CONTENT_MAX = 11 };
enum { TRUE_POSITIVES, FALSE_POSITIVES, TRUE_NEGATIVES, FALSE_NEGATIVES, PRECISION, RECALL, ROWS };

static double at_least(double x)
{
    return x < 1e-7 ? 1e-7 : x; /* the plugin's own guard against 0/0 */
}

static void put_column(uint8_t *content, size_t thresholds, size_t j, const double *column)
{
    for (size_t row = 0; row < ROWS; row++)
        put_le32(content + (row * thresholds + j) * 4, float_bits((float)column[row]));
}

/* The tensor with room for its numbers. NULL without memory, which member knows. */
static uint8_t *add_tensor(struct wire *member, size_t thresholds)
{
    return event_writer_value_room(member, EVENTLOG_DTYPE_FLOAT, (int64_t[]){ ROWS, (int64_t)thresholds }, 2,
                                   ROWS * thresholds * 4);
}

/* Weight of positives and negatives by bucket of their prediction: sums is 2 x thresholds, positives first. */
static int gather(double *sums, size_t thresholds, const uint8_t *labels, const float *predictions,
                  const float *weights, size_t n, struct error *e)
{
    memset(sums, 0, 2 * thresholds * sizeof *sums);
    for (size_t i = 0; i < n; i++) {
        size_t bucket;

        if (!(predictions[i] >= 0 && predictions[i] <= 1))
            return error_set(e, ERR_ARG, "prediction %zu is %g, not between 0 and 1", i, (double)predictions[i]);
        if (weights && !(weights[i] >= 0 && isfinite(weights[i])))
            return error_set(e, ERR_ARG, "weight %zu is %g, not a finite number of at least 0", i, (double)weights[i]);
        bucket = (size_t)floorf(predictions[i] * (float)(thresholds - 1));
        sums[(labels[i] ? 0 : thresholds) + bucket] += weights ? (double)weights[i] : 1;
    }
    return OK;
}

static int encode_predictions(struct wire *member, const uint8_t *labels, const float *predictions,
                              const float *weights, size_t n, size_t thresholds, struct error *e)
{
    double *sums, positives = 0, negatives = 0, *tp, *fp;
    uint8_t *content;
    int rc;

    if (!(sums = malloc(2 * thresholds * sizeof *sums)))
        return error_memory(e, NULL, "for %zu thresholds", thresholds);
    tp = sums;
    fp = sums + thresholds;
    rc = gather(sums, thresholds, labels, predictions, weights, n, e);
    if (rc == OK && (content = add_tensor(member, thresholds))) {
        for (size_t j = thresholds; j-- > 0;) {
            tp[j] = positives += tp[j];
            fp[j] = negatives += fp[j];
        }
        for (size_t j = 0; j < thresholds; j++)
            put_column(content, thresholds, j,
                       (double[ROWS]){ tp[j], fp[j], negatives - fp[j], positives - tp[j],
                                       tp[j] / at_least(tp[j] + fp[j]), tp[j] / at_least(positives) });
    }
    free(sums);
    return rc;
}

static int encode_counts(struct wire *member, const struct eventlog_pr_counts *c, size_t thresholds, struct error *e)
{
    uint8_t *content = add_tensor(member, thresholds);

    for (size_t j = 0; content && j < thresholds; j++) {
        double tp = c->true_positives[j], fp = c->false_positives[j], tn = c->true_negatives[j];
        double fn = c->false_negatives[j];

        if (!(tp >= 0 && fp >= 0 && tn >= 0 && fn >= 0 && isfinite(tp + fp + tn + fn)))
            return error_set(e, ERR_ARG, "counts of threshold %zu cannot be %g, %g, %g, %g", j, tp, fp, tn, fn);
        put_column(content, thresholds, j,
                   (double[ROWS]){ tp, fp, tn, fn, c->precision ? c->precision[j] : tp / at_least(tp + fp),
                                   c->recall ? c->recall[j] : tp / at_least(tp + fn) });
    }
    return OK;
}

/* content becomes PrCurvePluginData {2: num_thresholds}. */
static struct event_writer_value pr_curve_value_of(const char *tag, int64_t step, double wall_time,
                                                   uint8_t content[CONTENT_MAX], size_t thresholds,
                                                   const struct eventlog_value_options *options)
{
    content[0] = 2 << 3;
    return (struct event_writer_value){ .tag = tag,
                                        .step = step,
                                        .wall_time = wall_time,
                                        .plugin = "pr_curves",
                                        .content = content,
                                        .content_length = 1 + (size_t)put_varint(content + 1, thresholds),
                                        .options = options };
}

static int check_thresholds(size_t thresholds, struct error *e)
{
    if (thresholds >= 2 && thresholds <= MOST_THRESHOLDS)
        return OK;
    return error_set(e, ERR_ARG, "a curve of %zu thresholds; 2 to %d can be written", thresholds, MOST_THRESHOLDS);
}

int eventlog_writer_pr_curve(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                             const uint8_t *labels, const float *predictions, const float *weights, size_t n,
                             const struct eventlog_value_options *options, struct eventlog_error *error)
{
    size_t thresholds = options && options->thresholds ? options->thresholds : DEFAULT_THRESHOLDS;
    uint8_t content[CONTENT_MAX];
    struct event_writer_value value = pr_curve_value_of(tag, step, wall_time, content, thresholds, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = check_thresholds(thresholds, &e);

    if (rc == OK)
        rc = encode_predictions(&member, labels, predictions, weights, n, thresholds, &e);
    return event_writer_finish(w, rc, &value, &member, &e, error);
}

int eventlog_writer_pr_curve_counts(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                    const struct eventlog_pr_counts *counts, size_t thresholds,
                                    const struct eventlog_value_options *options, struct eventlog_error *error)
{
    uint8_t content[CONTENT_MAX];
    struct event_writer_value value = pr_curve_value_of(tag, step, wall_time, content, thresholds, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = check_thresholds(thresholds, &e);

    if (rc == OK)
        rc = encode_counts(&member, counts, thresholds, &e);
    return event_writer_finish(w, rc, &value, &member, &e, error);
}
