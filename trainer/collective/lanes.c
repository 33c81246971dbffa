#include "trainer/collective/lanes.h"

#include <stdlib.h>
#include <string.h>

/* Counts the ranks of each host, and finds this rank among them. */
static void count_ranks(struct lanes *l, int *count, int ranks, int rank)
{
    for (int r = 0; r < ranks; r++) {
        const int h = l->host_of[r];

        if (r == rank)
            l->local = count[h];
        if (h == l->host)
            l->members[count[h]] = r;
        count[h]++;
    }
    l->count = l->group = count[l->host];
    for (int h = 0; h < l->hosts; h++)
        l->count = count[h] < l->count ? count[h] : l->count;
    l->lane = l->local < l->count ? l->local : -1;
}

int lanes_init(struct lanes *l, const int *host, int ranks, int rank, struct error *e)
{
    int *count;

    *l = (struct lanes){ .host = host[rank] };
    for (int r = 0; r < ranks; r++)
        l->hosts = host[r] >= l->hosts ? host[r] + 1 : l->hosts;
    l->host_of = calloc((size_t)ranks, sizeof *l->host_of);
    l->members = calloc((size_t)ranks, sizeof *l->members);
    l->carriers = calloc((size_t)l->hosts, sizeof *l->carriers);
    count = calloc((size_t)l->hosts, sizeof *count);
    if (!l->host_of || !l->members || !l->carriers || !count) {
        free(count);
        return error_memory(e, NULL, "for the places of %d ranks", ranks);
    }
    memcpy(l->host_of, host, (size_t)ranks * sizeof *host);
    count_ranks(l, count, ranks, rank);
    memset(count, 0, (size_t)l->hosts * sizeof *count);
    for (int r = 0; r < ranks; r++)
        if (count[host[r]]++ == l->lane)
            l->carriers[host[r]] = r;
    free(count);
    return OK;
}

void lanes_release(struct lanes *l)
{
    free(l->host_of);
    free(l->members);
    free(l->carriers);
    *l = (struct lanes){ 0 };
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

struct tree_node lanes_node(const struct reduction *r, int from, int to)
{
    const int first = reduction_tree_first(r->micro_shards, r->workers, from);

    return (struct tree_node){ first, reduction_tree_first(r->micro_shards, r->workers, to) - first };
}

int lanes_keep_order(const int *host, const struct reduction *r)
{
    int hosts = 0;

    for (int from = 0, to; from < r->workers && r->micro_shards; from = to) {
        struct tree_node node;

        for (to = from; to < r->workers && host[to] == host[from]; to++)
            ;
        node = lanes_node(r, from, to);
        /* Hosts are numbered in the order of their first ranks: one that comes again is in two parts. */
        if (host[from] != hosts++ ||
            reduction_tree_nodes(r->micro_shards, node.first, node.first + node.count, NULL) != 1)
            return 0;
    }
    return 1;
}
