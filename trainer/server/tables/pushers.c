#include "trainer/server/tables/pushers.h"

#include <stdlib.h>

/* Every pusher has one vector: its own only one, or the sum of its host's. */
static void aggregate(struct pushers *p, const struct reduction *r, const int *host)
{
    for (int w = 0; w < r->workers; w++) {
        const int h = p->of[w] = host[w];
        const int vectors = reduction_vectors(r, w);

        if (h == p->count)
            p->rank[p->count++] = w;
        p->members[h]++;
        for (int v = r->first[w]; v < r->first[w] + vectors && r->nodes; v++) {
            struct tree_node *node = &p->reduction.nodes[h];

            if (!node->count)
                node->first = r->nodes[v].first;
            node->count += r->nodes[v].count;
        }
    }
    for (int h = 0; h <= p->count; h++)
        p->reduction.first[h] = h;
    p->reduction.workers = p->reduction.count = p->count;
}

static void copy(struct pushers *p, const struct reduction *r)
{
    p->count = p->reduction.workers = r->workers;
    p->reduction.count = r->count;
    for (int w = 0; w < r->workers; w++) {
        p->rank[w] = p->of[w] = w;
        p->members[w] = 1;
    }
    for (int w = 0; w <= r->workers; w++)
        p->reduction.first[w] = r->first[w];
    for (int v = 0; v < r->count && r->nodes; v++)
        p->reduction.nodes[v] = r->nodes[v];
}

int pushers_init(struct pushers *out, const struct reduction *r, const int *host, struct error *e)
{
    const size_t workers = (size_t)r->workers;
    struct pushers p = { .reduction.micro_shards = r->micro_shards };

    p.rank = calloc(workers, sizeof *p.rank);
    p.of = calloc(workers, sizeof *p.of);
    p.members = calloc(workers, sizeof *p.members);
    p.reduction.first = calloc(workers + 1, sizeof *p.reduction.first);
    p.reduction.nodes = r->nodes ? calloc((size_t)r->count, sizeof *p.reduction.nodes) : NULL;
    if (!p.rank || !p.of || !p.members || !p.reduction.first || (r->nodes && !p.reduction.nodes)) {
        pushers_release(&p);
        return error_memory(e, NULL, "for the rows of %zu workers", workers);
    }
    if (host)
        aggregate(&p, r, host);
    else
        copy(&p, r);
    *out = p;
    return OK;
}

void pushers_release(struct pushers *p)
{
    free(p->rank);
    free(p->of);
    free(p->members);
    reduction_release(&p->reduction);
    *p = (struct pushers){ 0 };
}
