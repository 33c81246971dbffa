/*
 * ring.c - CollectiveAllReduce: as mpi, but gradients are passed round a ring of all ranks, each to the next one
 * (strategies.md, 7.3). The ring adds each chunk in an order of its own. With micro-shards, which are one tree for any
 * strategy, slices are exchanged instead, as mpi does by messages: of the same volume.
 */
#include "trainer/strategies/allreduce.h"

#include "trainer/collective/transport.h"

#include "trainer/strategies/shared_rows.h"

#include <stdio.h>

struct ring_options {
    const char *exchange; /* float32, bfloat16 */
};

_Static_assert(sizeof(struct ring_options) <= STRATEGY_OWN_SIZE, "they have room");

static int ring_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    const int tree = common->reduction.micro_shards > 0;

    const struct ring_options *o = (const void *)common->options.own.bytes;

    return allreduce_start_with(out, common, tree ? message_exchange_new : ring_new, o->exchange, e);
}

static size_t ring_rows(struct option *rows, void *own)
{
    return shared_rows_exchange(rows, &((struct ring_options *)own)->exchange);
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
    .options = ring_rows,
    .workers = ring_workers,
    .describe = ring_describe,
    .start = ring_start,
};
