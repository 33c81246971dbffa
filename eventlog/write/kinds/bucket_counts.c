#include "base/bytes.h"
#include "base/error.h"
#include "eventlog/eventlog.h"
#include "eventlog/public.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The bucket of a value is looked up by the first 16 bits of its double (sign, exponent, 4 bits of the fraction), in
 * order of value: a cell of that table is at most 1/16 wide, so TensorFlow's limits, 10 % apart, leave one comparison.
 * For few values the table would take longer than it saves.
 */
enum { CELLS = 1 << 16, FEW = 4096 };

/* Doubles but NaN in ascending order are these in ascending order; -0 comes right before 0. */
static uint64_t order_of(double x)
{
    uint64_t bits = double_bits(x);

    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
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

/* first[c]: the last edge whose cell is before c, or edge 0. */
static void fill_cells(uint32_t *first, const double *edges, size_t edge_count)
{
    size_t edge = 0;

    for (size_t c = 0; c < CELLS + 2; c++) {
        while (edge + 1 < edge_count && order_of(edges[edge + 1]) >> 48 < c)
            edge++;
        first[c] = (uint32_t)edge;
    }
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

int eventlog_bucket_counts(const double *values, size_t n, const double *edges, size_t edge_count, uint64_t *counts,
                           struct eventlog_error *error)
{
    uint32_t *first = NULL;
    struct error e = { 0 };

    if (check_edges(edges, edge_count, &e) != OK)
        return public_error(error, &e);
    memset(counts, 0, (edge_count - 1) * sizeof *counts);
    if (n > FEW && (first = malloc((CELLS + 2) * sizeof *first))) /* without memory for the table it takes longer */
        fill_cells(first, edges, edge_count);
    for (size_t i = 0; i < n; i++) {
        double x = values[i];
        size_t edge, cell;

        if (!(x >= edges[0] && x <= edges[edge_count - 1]))
            continue;
        cell = order_of(x) >> 48;
        /* Up to the end of the next cell: there is the edge 0 of an x that is -0. */
        edge = first ? search(edges, first[cell], first[cell + 2], x) : search(edges, 0, edge_count - 1, x);
        counts[edge < edge_count - 1 ? edge : edge_count - 2]++;
    }
    free(first);
    return EVENTLOG_OK;
}
