#include "trainer/server/worker_groups.h"

#include "trainer/collective/lanes.h"

#include <stdlib.h>

/* A group's sum is a single vector: with micro-shards that of the node that its workers, which are neighbours, make. */
static int reduce_by_host(struct worker_groups *g, const struct reduction *r, struct error *e)
{
    struct reduction *sums = &g->reduction;

    *sums = (struct reduction){ .workers = g->count, .micro_shards = r->micro_shards, .count = g->count };
    sums->first = calloc((size_t)g->count + 1, sizeof *sums->first);
    sums->nodes = r->micro_shards ? calloc((size_t)g->count, sizeof *sums->nodes) : NULL;
    if (!sums->first || (r->micro_shards && !sums->nodes))
        return error_memory(e, NULL, "for the sums of %d hosts", g->count);
    for (int k = 0; k <= g->count; k++)
        sums->first[k] = k;
    for (int k = 0; k < g->count && sums->nodes; k++)
        sums->nodes[k] = lanes_node(r, g->first[k], g->first[k] + g->size[k]);
    return OK;
}

int worker_groups_init(struct worker_groups *out, const struct reduction *r, const int *host, struct error *e)
{
    const size_t workers = (size_t)r->workers;

    *out = (struct worker_groups){ .workers = r->workers, .together = host != NULL };
    out->of = calloc(workers, sizeof *out->of);
    out->first = calloc(workers, sizeof *out->first);
    out->size = calloc(workers, sizeof *out->size);
    if (!out->of || !out->first || !out->size)
        return error_memory(e, NULL, "for the groups of %d workers", r->workers);
    for (int w = 0; w < r->workers; w++) {
        out->of[w] = host ? host[w] : w;
        if (out->size[out->of[w]]++ == 0)
            out->first[out->count++] = w;
    }
    return host ? reduce_by_host(out, r, e) : reduction_init(&out->reduction, r->workers, r->micro_shards, e);
}

void worker_groups_release(struct worker_groups *g)
{
    free(g->of);
    free(g->first);
    free(g->size);
    reduction_release(&g->reduction);
    *g = (struct worker_groups){ 0 };
}

int worker_groups_next(const struct worker_groups *g, int worker)
{
    for (int w = worker + 1; w < g->workers; w++)
        if (g->of[w] == g->of[worker])
            return w;
    return -1;
}
