#include "trainer/server/table_groups.h"

#include <stdlib.h>

int table_groups_vectors(const struct table_groups *g, int k)
{
    return g->vectors[k + 1] - g->vectors[k];
}

int table_groups_next(const struct table_groups *g, int worker)
{
    for (int w = worker + 1; w < g->workers; w++)
        if (g->of[w] == g->of[worker])
            return w;
    return -1;
}

void table_groups_release(struct table_groups *g)
{
    free(g->of);
    free(g->first);
    free(g->size);
    free(g->vectors);
    free(g->place);
    free(g->parts);
    reduction_release(&g->pushed);
    *g = (struct table_groups){ 0 };
}

/* The nodes that neighbouring workers [from, to) of a group make whole, into nodes. Returns how many. */
static int nodes_of(const struct reduction *r, int from, int to, struct tree_node *nodes)
{
    return reduction_tree_nodes(r->micro_shards, reduction_tree_first(r->micro_shards, r->workers, from),
                                reduction_tree_first(r->micro_shards, r->workers, to), nodes);
}

/* How many of the workers' vectors are within a node. They never reach beyond: vectors are the largest nodes of their
 * worker's part, which is within that of its group. */
static int parts_within(const struct reduction *r, struct tree_node node)
{
    int parts = 0;

    for (int v = 0; v < r->count; v++)
        parts += r->nodes[v].first >= node.first && r->nodes[v].first < node.first + node.count;
    return parts;
}

/* The sums of group k, whose nodes go to `nodes` from the group's first sum on: there are never more of them than
 * vectors of its workers. */
static void list_nodes(struct table_groups *g, const struct reduction *r, int k, struct tree_node *nodes)
{
    int count = g->vectors[k];

    for (int from = g->first[k], to; from >= 0;) {
        struct tree_node some[REDUCTION_TREE_NODES_MAX];
        int found;

        for (to = from + 1; to < g->workers && g->of[to] == k; to++)
            ;
        found = nodes_of(r, from, to, some);
        for (int i = 0; i < found; i++) {
            g->parts[count] = parts_within(r, some[i]);
            nodes[count++] = some[i];
        }
        from = table_groups_next(g, to - 1);
    }
    g->vectors[k + 1] = count;
}

/* Where each sum is when all are ordered by their first micro-shard. */
static void order(struct table_groups *g, const struct tree_node *nodes, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++)
            g->place[i] += nodes[j].first < nodes[i].first;
        g->pushed.nodes[g->place[i]] = nodes[i];
    }
}

static int sum_by_host(struct table_groups *g, const struct reduction *r, struct error *e)
{
    struct tree_node *nodes = r->micro_shards ? calloc((size_t)r->count, sizeof *nodes) : NULL;

    g->pushed = (struct reduction){ .workers = r->workers, .micro_shards = r->micro_shards };
    g->pushed.nodes = nodes ? calloc((size_t)r->count, sizeof *nodes) : NULL;
    if (r->micro_shards && !g->pushed.nodes) {
        free(nodes);
        return error_memory(e, NULL, "for the sums of %d hosts", g->count);
    }
    for (int k = 0; k < g->count; k++) {
        if (nodes) {
            list_nodes(g, r, k, nodes);
            continue;
        }
        g->parts[k] = g->size[k];
        g->place[k] = k;
        g->vectors[k + 1] = k + 1;
    }
    g->pushed.count = g->vectors[g->count];
    if (nodes)
        order(g, nodes, g->pushed.count);
    free(nodes);
    return OK;
}

static int each_alone(struct table_groups *g, const struct reduction *r, struct error *e)
{
    for (int k = 0; k < g->count; k++)
        g->vectors[k + 1] = r->first[k + 1];
    for (int v = 0; v < r->count; v++) {
        g->place[v] = v;
        g->parts[v] = 1;
    }
    return reduction_init(&g->pushed, r->workers, r->micro_shards, e);
}

int table_groups_init(struct table_groups *out, const struct reduction *r, const int *host, struct error *e)
{
    const size_t workers = (size_t)r->workers;

    *out = (struct table_groups){ .workers = r->workers, .together = host != NULL };
    out->of = calloc(workers, sizeof *out->of);
    out->first = calloc(workers, sizeof *out->first);
    out->size = calloc(workers, sizeof *out->size);
    out->vectors = calloc(workers + 1, sizeof *out->vectors);
    out->place = calloc((size_t)r->count, sizeof *out->place);
    out->parts = calloc((size_t)r->count, sizeof *out->parts);
    if (!out->of || !out->first || !out->size || !out->vectors || !out->place || !out->parts)
        return error_memory(e, NULL, "for the groups of %d workers", r->workers);
    for (int w = 0; w < r->workers; w++) {
        out->of[w] = host ? host[w] : w;
        if (out->size[out->of[w]]++ == 0)
            out->first[out->count++] = w;
    }
    return host ? sum_by_host(out, r, e) : each_alone(out, r, e);
}
