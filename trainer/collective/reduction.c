#include "trainer/collective/reduction.h"

#include "trainer/collective/exchange.h"

#include <stdlib.h>

/* Sets first[], and nodes[] if there is room for them already. */
static void fill(struct reduction *r)
{
    r->count = 0;
    for (int w = 0; w < r->workers; w++) {
        r->first[w] = r->count;
        r->count += r->micro_shards
                        ? reduction_tree_nodes(r->micro_shards, reduction_tree_first(r->micro_shards, r->workers, w),
                                               reduction_tree_first(r->micro_shards, r->workers, w + 1),
                                               r->nodes ? r->nodes + r->count : NULL)
                        : 1;
    }
    r->first[r->workers] = r->count;
}

int reduction_init(struct reduction *out, int workers, int micro_shards, struct error *e)
{
    struct reduction r = { .workers = workers, .micro_shards = micro_shards };

    r.first = calloc((size_t)workers + 1, sizeof *r.first);
    if (r.first)
        fill(&r);
    if (r.first && micro_shards && (r.nodes = calloc((size_t)r.count, sizeof *r.nodes)))
        fill(&r);
    if (!r.first || (micro_shards && !r.nodes)) {
        reduction_release(&r);
        return error_memory(e, NULL, "for the sums of %d workers", workers);
    }
    *out = r;
    return OK;
}

void reduction_release(struct reduction *r)
{
    free(r->first);
    free(r->nodes);
    *r = (struct reduction){ 0 };
}

int reduction_vectors(const struct reduction *r, int w)
{
    return r->first[w + 1] - r->first[w];
}

int reduction_most_vectors(const struct reduction *r)
{
    int most = 0;

    for (int w = 0; w < r->workers; w++)
        most = reduction_vectors(r, w) > most ? reduction_vectors(r, w) : most;
    return most;
}

void reduction_sum(const struct reduction *r, real *out, const real *const *parts, size_t from, size_t to)
{
    if (r->micro_shards)
        reduction_tree_sum(out, parts, r->nodes, r->count, from, to);
    else
        exchange_sum(out, parts, r->count, from, to);
}
