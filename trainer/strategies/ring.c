/*
 * ring.c - CollectiveAllReduce: as mpi, but gradients are passed round a ring of all ranks, each to the next one
 * (strategies.md, 7.3). The ring adds each chunk in an order of its own. With micro-shards, which are one tree for any
 * strategy, slices are exchanged instead, as mpi does by messages: of the same volume.
 */
#include "trainer/strategies/allreduce.h"

#include "trainer/collective/transports/transport.h"

#include <stdio.h>

static int ring_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    const int tree = common->reduction.micro_shards > 0;

    return allreduce_start_with(out, common, tree ? message_exchange_new : ring_new, e);
}

static int ring_workers(const struct strategy_options *o, int ranks, struct error *e)
{
    (void)o;
    (void)e;
    return ranks;
}

static void ring_describe(const struct strategy_options *o, int ranks, char *text, size_t size)
{
    (void)o;
    snprintf(text, size, "%d rank%s", ranks, ranks == 1 ? "" : "s");
}

const struct strategy_kind strategy_ring = {
    .name = "ring",
    .help = "on ranks that all hold the weights and pass the gradients round a ring",
    .workers = ring_workers,
    .describe = ring_describe,
    .start = ring_start,
};
