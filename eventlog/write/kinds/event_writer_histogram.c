#include "eventlog/write/event_writer.h"

#include "base/bytes.h"
#include "eventlog/eventlog.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Histograms are written as TensorFlow 2 does, a DT_DOUBLE tensor of rows (left, right, count): both of TensorBoard's
 * loaders keep it in double. The older HistogramProto would become float32 in one of them, and in the other get a first
 * row whose left edge is to the right of its right edge.
 */
enum { POSITIVE = 774, LIMITS = 2 * POSITIVE + 3, ROW = 24, MOST_BUCKETS = 1 << 24 };

/* Values of either type; the other pointer is NULL. */
struct numbers {
    const float *floats;
    const double *doubles;
    size_t n;
};

static double number(const struct numbers *v, size_t i)
{
    return v->floats ? (double)v->floats[i] : v->doubles[i];
}

/* Adds a tensor of k rows of zeros to member; returns the rows, or NULL if k is 0 or memory ran out (wire_check() of
 * member tells). */
static uint8_t *add_rows(struct wire *member, size_t k)
{
    return event_writer_value_room(member, EVENTLOG_DTYPE_DOUBLE, (int64_t[]){ (int64_t)k, 3 }, 2, k * ROW);
}

static void histogram_put_row(uint8_t *rows, size_t i, double left, double right, double count)
{
    put_le64(rows + i * ROW, double_bits(left));
    put_le64(rows + i * ROW + 8, double_bits(right));
    put_le64(rows + i * ROW + 16, double_bits(count));
}

static double left_edge(const uint8_t *rows, size_t i)
{
    return bits_double(get_le64(rows + i * ROW));
}

static int range_of(const struct numbers *v, double *min, double *max, struct error *e)
{
    *min = DBL_MAX;
    *max = -DBL_MAX;
    for (size_t i = 0; i < v->n; i++) {
        double x = number(v, i);

        if (!isfinite(x))
            return error_set(e, ERR_ARG, "value %zu of the histogram is %g; leave out values that are not finite", i,
                             x);
        *min = x < *min ? x : *min;
        *max = x > *max ? x : *max;
    }
    return OK;
}

/* Right edges of TensorFlow's buckets, ascending: by repeated multiplication, to have the same bits. */
static void default_limits(double *limits)
{
    double p = 1e-12;

    limits[0] = -DBL_MAX;
    limits[POSITIVE + 1] = 0;
    limits[LIMITS - 1] = DBL_MAX;
    for (size_t i = 1; i <= POSITIVE; i++, p *= 1.1) {
        limits[POSITIVE + 1 + i] = p;
        limits[POSITIVE + 1 - i] = -p;
    }
}

/* Index of the first limit above x; DBL_MAX itself belongs to the last bucket. */
static size_t bucket_of(const double *limits, double x)
{
    size_t low = 0, high = LIMITS - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (limits[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void encode_default(struct wire *member, const struct numbers *v, double min, double max)
{
    double limits[LIMITS];
    uint64_t counts[LIMITS] = { 0 };
    size_t first, last, k = 0, row = 0;
    uint8_t *rows;

    if (!v->n) {
        add_rows(member, 0);
        return;
    }
    default_limits(limits);
    for (size_t i = 0; i < v->n; i++)
        counts[bucket_of(limits, number(v, i))]++;
    first = bucket_of(limits, min);
    last = bucket_of(limits, max);
    for (size_t i = first; i <= last; i++)
        k += counts[i] || counts[i - 1];
    if (!(rows = add_rows(member, k)))
        return;
    for (size_t i = first; i <= last; i++) {
        if (counts[i] || counts[i - 1])
            histogram_put_row(rows, row++, i == first ? min : limits[i - 1], i == last ? max : limits[i],
                              (double)counts[i]);
        else
            histogram_put_row(rows, row - 1, left_edge(rows, row - 1), limits[i], 0); /* the run of empty ones grows */
    }
}

/* k buckets of equal width, as tensorboard.plugins.histogram computes them. */
static int encode_equal(struct wire *member, const struct numbers *v, double min, double max, size_t k, double *counts,
                        struct error *e)
{
    double range = max - min, width = range / (double)k;
    uint8_t *rows;

    if (v->n && !isfinite(range))
        return error_set(e, ERR_ARG, "the histogram's range, %g to %g, is too wide", min, max);
    memset(counts, 0, k * sizeof *counts);
    for (size_t i = 0; i < v->n; i++) {
        double place = (number(v, i) - min) / width;

        counts[range > 0 && place < (double)(k - 1) ? (size_t)place : k - 1]++;
    }
    if (!(rows = add_rows(member, k)))
        return OK;
    for (size_t i = 0; v->n && i < k; i++)
        histogram_put_row(rows, i, range > 0 ? min + (double)i * width : min,
                          range > 0 && i + 1 < k ? min + (double)(i + 1) * width : max, counts[i]);
    return OK;
}

static int encode_numbers(struct wire *member, const struct numbers *v, size_t buckets, struct error *e)
{
    double min, max, *counts;
    int rc = range_of(v, &min, &max, e);

    if (rc != OK)
        return rc;
    if (!buckets) {
        encode_default(member, v, min, max);
        return OK;
    }
    if (buckets > MOST_BUCKETS)
        return error_set(e, ERR_ARG, "%zu buckets in a histogram; at most %d can be written", buckets, MOST_BUCKETS);
    if (!(counts = malloc(buckets * sizeof *counts)))
        return error_memory(e, NULL, "for %zu buckets", buckets);
    rc = encode_equal(member, v, min, max, buckets, counts, e);
    free(counts);
    return rc;
}

static int encode_buckets(struct wire *member, const double *edges, const double *counts, size_t n, struct error *e)
{
    uint8_t *rows;

    if (n > MOST_BUCKETS)
        return error_set(e, ERR_ARG, "%zu buckets in a histogram; at most %d can be written", n, MOST_BUCKETS);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(edges[i]) || !isfinite(edges[i + 1]) || edges[i] > edges[i + 1])
            return error_set(e, ERR_ARG, "bucket %zu of the histogram cannot go from %g to %g", i, edges[i],
                             edges[i + 1]);
        if (!isfinite(counts[i]) || counts[i] < 0)
            return error_set(e, ERR_ARG, "bucket %zu of the histogram cannot hold %g values", i, counts[i]);
    }
    rows = add_rows(member, n);
    for (size_t i = 0; rows && i < n; i++)
        histogram_put_row(rows, i, edges[i], edges[i + 1], counts[i]);
    return OK;
}

static struct event_writer_value histogram_value_of(const char *tag, int64_t step, double wall_time,
                                                    const struct eventlog_value_options *options)
{
    return (struct event_writer_value){
        .tag = tag, .step = step, .wall_time = wall_time, .plugin = "histograms", .options = options
    };
}

static int histogram(struct eventlog_writer *w, const struct event_writer_value *value, const struct numbers *v,
                     struct eventlog_error *error)
{
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_numbers(&member, v, value->options ? value->options->buckets : 0, &e);

    return event_writer_finish(w, rc, value, &member, &e, error);
}

int eventlog_writer_histogram_floats(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                     const float *values, size_t n, const struct eventlog_value_options *options,
                                     struct eventlog_error *error)
{
    struct event_writer_value value = histogram_value_of(tag, step, wall_time, options);

    return histogram(w, &value, &(struct numbers){ values, NULL, n }, error);
}

int eventlog_writer_histogram_doubles(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                      const double *values, size_t n, const struct eventlog_value_options *options,
                                      struct eventlog_error *error)
{
    struct event_writer_value value = histogram_value_of(tag, step, wall_time, options);

    return histogram(w, &value, &(struct numbers){ NULL, values, n }, error);
}

int eventlog_writer_histogram_buckets(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                      const double *edges, const double *counts, size_t n,
                                      const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = histogram_value_of(tag, step, wall_time, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_buckets(&member, edges, counts, n, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}
