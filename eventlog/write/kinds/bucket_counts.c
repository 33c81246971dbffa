#include "base/bytes.h"
#include "base/error.h"
#include "eventlog/eventlog.h"
#include "eventlog/public.h"

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

int eventlog_bucket_counts(const double *values, size_t n, const double *edges, size_t edge_count, uint64_t *counts,
                           struct eventlog_error *error)
{
    uint32_t *first = NULL;
    struct error e = { 0 };

    if (check_edges(edges, edge_count, &e) != OK)
        return public_error(error, &e);
    memset(counts, 0, (edge_count - 1) * sizeof *counts);
    if (n > FEW) /* without memory for the table it takes longer */
        first = malloc((CELLS + 1) * sizeof *first);
    if (first && fill_cells(first, edges, edge_count))
        count_single(values, n, edges, edge_count - 2, first, counts);
    else
        count_any(values, n, edges, edge_count - 2, first, counts);
    free(first);
    return EVENTLOG_OK;
}
