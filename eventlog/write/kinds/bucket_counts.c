#include "base/bytes.h"
#include "base/error.h"
#include "eventlog/eventlog.h"
#include "eventlog/public.h"
#include "eventlog/write/kinds/histogram_limits.h"
#include "eventlog/write/kinds/number_range.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The bucket of a value is looked up by the first 16 bits of its double (sign, exponent, 4 bits of the fraction), in
 * order of value: a cell of that table is at most 1/16 wide, so TensorFlow's limits, 10 % apart, leave one comparison,
 * which needs no branch: which way it would go cannot be foreseen. For few values the table would take longer than it
 * saves.
 */
enum { CELLS = 1 << 16, FEW = 4096 };

/* Doubles but NaN in ascending order are these in ascending order; -0 comes right before 0. */
static uint64_t order_of(double x)
{
    uint64_t bits = double_bits(x);

    return bits ^ (-(bits >> 63) | (uint64_t)1 << 63);
}

/* The last of edges[low .. high] that is not above x; edges[low] is not. */
static size_t search(const double *edges, size_t low, size_t high, double x)
{
    while (low < high) {
        size_t middle = high - (high - low) / 2;

        if (edges[middle] <= x)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* first[c]: the last edge whose cell is before c, or edge 0. 1: no cell has more than one edge. */
static int fill_cells(uint32_t *first, const double *edges, size_t edge_count)
{
    size_t edge = 0;
    int single = 1;

    for (size_t c = 0; c <= CELLS; c++) {
        size_t before = edge;

        while (edge + 1 < edge_count && order_of(edges[edge + 1]) >> 48 < c)
            edge++;
        single &= edge <= before + 1;
        first[c] = (uint32_t)edge;
    }
    return single;
}

static int check_edges(const double *edges, size_t edge_count, struct error *e)
{
    if (edge_count < 2 || edge_count > UINT32_MAX)
        return error_set(e, ERR_ARG, "%zu edges do not make buckets", edge_count);
    for (size_t i = 0; i < edge_count; i++)
        if (!isfinite(edges[i]) || (i && edges[i] < edges[i - 1]))
            return error_set(e, ERR_ARG, "edge %zu of the buckets, %g, is %s", i, edges[i],
                             isfinite(edges[i]) ? "below the one before" : "not finite");
    return OK;
}

/* With a table, of whose cells none has more than one edge. */
static void count_single(const double *values, size_t n, const double *edges, size_t last, const uint32_t *first,
                         uint64_t *counts)
{
    for (size_t i = 0; i < n; i++) {
        double x = values[i] + 0.0; /* -0 is 0 */
        size_t bucket;

        if (!(x >= edges[0] && x <= edges[last + 1]))
            continue;
        bucket = first[order_of(x) >> 48];
        bucket = bucket < last ? bucket : last;
        bucket += edges[bucket + 1] <= x;
        counts[bucket < last ? bucket : last]++;
    }
}

/* last: the last bucket; first: the table, or NULL. */
static void count_any(const double *values, size_t n, const double *edges, size_t last, const uint32_t *first,
                      uint64_t *counts)
{
    for (size_t i = 0; i < n; i++) {
        double x = values[i] + 0.0;
        size_t edge, cell;

        if (!(x >= edges[0] && x <= edges[last + 1]))
            continue;
        cell = order_of(x) >> 48;
        edge = first ? search(edges, first[cell], first[cell + 1], x) : search(edges, 0, last + 1, x);
        counts[edge < last ? edge : last]++;
    }
}

/* ---- the range -------------------------------------------------------------------------------------------------- */

/* of the values so far; a value that is not finite makes it slow */
struct ends {
    struct number_range range;
    int is_slow;
};

static void take_in(struct ends *ends, const double *values, size_t n)
{
    if (!ends->is_slow && !number_range_finite(values, n))
        ends->is_slow = 1;
    if (!ends->is_slow)
        number_range_extend(&ends->range, values, n);
}

static void slow_range(const double *values, size_t n, double *min, double *max)
{
    *min = *max = values[0];
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i])) {
            *min = *max = values[i];
            return;
        }
        *min = values[i] < *min ? values[i] : *min;
        *max = values[i] > *max ? values[i] : *max;
    }
}

static void find_range(const struct ends *ends, const double *values, size_t n, double *min, double *max)
{
    number_range_end(&ends->range, min, max);
    if (ends->is_slow || *min == 0 || *max == 0) /* of 0 and -0, which lanes cannot tell apart, the first */
        slow_range(values, n, min, max);
}

/* ---- TensorFlow's default buckets ------------------------------------------------------------------------------- */

/* These edges are all limits but the first and the last, beyond which nothing is counted. BLOCK values stay in the
 * processor's first cache. */
enum { DEFAULT_EDGES = HISTOGRAM_LIMITS - 2, SETS = 4, BLOCK = 256, PIECE = BLOCK << 16 };

static int are_default(const double *edges, size_t edge_count)
{
    return edge_count == DEFAULT_EDGES && !memcmp(edges, histogram_limits()->limits + 1, edge_count * sizeof *edges);
}

/* Several sets of counts in turn: values in the same bucket, one after the other, need not wait for each other. What is
 * not finite goes to the buckets beyond the edges. */
static void count_block(const double *values, size_t n, uint32_t sets[SETS][HISTOGRAM_LIMITS])
{
    const struct histogram_limits *l = histogram_limits();
    size_t i;

    for (i = 0; i + SETS <= n; i += SETS) {
        sets[0][histogram_limits_bucket(l, values[i])]++;
        sets[1][histogram_limits_bucket(l, values[i + 1])]++;
        sets[2][histogram_limits_bucket(l, values[i + 2])]++;
        sets[3][histogram_limits_bucket(l, values[i + 3])]++;
    }
    for (; i < n; i++)
        sets[0][histogram_limits_bucket(l, values[i])]++;
}

/* At most PIECE values, so that no count overflows. Returns how many are beyond the last edge, or at it. */
static uint64_t count_piece(const double *values, size_t n, uint64_t *counts, struct ends *ends)
{
    uint32_t sets[SETS][HISTOGRAM_LIMITS] = { 0 };
    uint64_t beyond = 0;

    for (size_t from = 0, length; from < n; from += length) {
        length = n - from < BLOCK ? n - from : BLOCK;
        if (ends)
            take_in(ends, values + from, length);
        count_block(values + from, length, sets);
    }
    for (size_t k = 0; k < SETS; k++) {
        for (size_t i = 0; i < DEFAULT_EDGES - 1; i++)
            counts[i] += sets[k][i + 2];
        beyond += sets[k][HISTOGRAM_LIMITS - 1];
    }
    return beyond;
}

static void bucket_counts_default(const double *values, size_t n, uint64_t *counts, struct ends *ends)
{
    const double last = histogram_limits()->limits[DEFAULT_EDGES];
    uint64_t beyond = 0;

    for (size_t from = 0, length; from < n; from += length) {
        length = n - from < PIECE ? n - from : PIECE;
        beyond += count_piece(values + from, length, counts, ends);
    }
    for (size_t i = 0; beyond && i < n; i++)
        counts[DEFAULT_EDGES - 2] += values[i] == last; /* which the last bucket has, too */
}

/* ---- public functions ------------------------------------------------------------------------------------------- */

static void count_others(const double *values, size_t n, const double *edges, size_t edge_count, uint64_t *counts)
{
    uint32_t *first = NULL;

    if (n > FEW) /* without memory for the table it takes longer */
        first = malloc((CELLS + 1) * sizeof *first);
    if (first && fill_cells(first, edges, edge_count))
        count_single(values, n, edges, edge_count - 2, first, counts);
    else
        count_any(values, n, edges, edge_count - 2, first, counts);
    free(first);
}

/* ends: NULL, or takes in all values. */
static int bucket_counts(const double *values, size_t n, const double *edges, size_t edge_count, uint64_t *counts,
                         struct ends *ends, struct error *e)
{
    int rc = check_edges(edges, edge_count, e);

    if (rc != OK)
        return rc;
    memset(counts, 0, (edge_count - 1) * sizeof *counts);
    if (are_default(edges, edge_count)) {
        bucket_counts_default(values, n, counts, ends);
        return OK;
    }
    count_others(values, n, edges, edge_count, counts);
    if (ends)
        take_in(ends, values, n);
    return OK;
}

int eventlog_bucket_counts(const double *values, size_t n, const double *edges, size_t edge_count, uint64_t *counts,
                           struct eventlog_error *error)
{
    struct error e = { 0 };

    return bucket_counts(values, n, edges, edge_count, counts, NULL, &e) == OK ? EVENTLOG_OK : public_error(error, &e);
}

int eventlog_bucket_counts_range(const double *values, size_t n, const double *edges, size_t edge_count,
                                 uint64_t *counts, double *min, double *max, struct eventlog_error *error)
{
    struct ends ends = { .is_slow = 0 };
    struct error e = { 0 };

    number_range_begin(&ends.range);
    if (!n)
        error_set(&e, ERR_ARG, "no values have no range");
    else if (bucket_counts(values, n, edges, edge_count, counts, &ends, &e) == OK)
        find_range(&ends, values, n, min, max);
    return e.code == OK ? EVENTLOG_OK : public_error(error, &e);
}
