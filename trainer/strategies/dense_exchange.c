#include "trainer/strategies/dense_exchange.h"

#include "trainer/collective/exchange.h"
#include "trainer/collective/transport_choice.h"

#include <stdlib.h>

/* ---- a step ------------------------------------------------------------------------------------------------------ */

void dense_exchange_begin(struct dense_exchange *d, int64_t step)
{
    d->gathered = d->part.total;
    d->transport->operations->begin(d->transport, step);
}

/* Packs the dense elements that have become final. */
static void gather(struct dense_exchange *d, size_t low)
{
    const struct strategy *s = d->strategy;
    const size_t packed = dense_part_below(&d->part, low);

    for (int v = 0; v < reduction_vectors(&s->reduction, s->worker) && packed < d->gathered; v++)
        dense_part_gather(&d->part, packed, d->gathered, d->vectors[v], d->transport->vectors[v]);
    d->gathered = packed < d->gathered ? packed : d->gathered;
}

void dense_exchange_ready(struct dense_exchange *d, size_t low)
{
    struct phase_clock *const clock = d->strategy->options.clock;
    const enum phase before = phase_clock_enter(clock, PHASE_REDUCING);

    gather(d, low);
    /* Never the last bucket, which is for complete(): dense elements may all be above a table. */
    if (d->gathered > 0)
        d->transport->operations->advance(d->transport, buckets_ready(d->part.total, d->bucket, d->gathered));
    phase_clock_enter(clock, before);
}

int dense_exchange_complete(struct dense_exchange *d, const struct tally_part *mine, struct tally_part *parts,
                            struct error *e)
{
    gather(d, 0);
    return d->transport->operations->complete(d->transport, mine, parts, e);
}

/* The optimizer's own arrays at element x.from of the exchange vector. */
static struct optimizer_state state_of(struct optimizer *o, struct extent x)
{
    static const enum optimizer_array_kind weights[] = { ARRAY_WEIGHTS, ARRAY_SLOT_1, ARRAY_SLOT_2, ARRAY_AVERAGES };
    static const enum optimizer_array_kind statistics[] = { ARRAY_STATISTICS, ARRAY_BIASED, ARRAY_KINDS, ARRAY_KINDS };
    const int is_weight = x.from < optimizer_array(o, ARRAY_WEIGHTS).count;
    real *at[4] = { NULL };

    for (int i = 0; i < 4; i++) {
        const struct optimizer_array a = optimizer_array(o, (is_weight ? weights : statistics)[i]);

        at[i] = a.count ? a.values + (x.from - a.base) : NULL;
    }
    return (struct optimizer_state){ at[0], at[1], at[2], at[3] };
}

void dense_exchange_update(struct dense_exchange *d)
{
    const struct strategy *s = d->strategy;
    const real *sum = d->transport->result;
    size_t at = 0;

    for (size_t i = 0; i + 1 < d->part.count; i++) { /* the last one is the weight */
        const struct extent x = d->part.extents[i];
        const struct optimizer_state state = state_of(s->optimizer, x);

        optimizer_apply_to(s->optimizer, s->global_step, sum + at, sum[d->part.total - 1], x.from, x.to, &state);
        at += x.to - x.from;
    }
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

static int vectors_new(struct dense_exchange *d)
{
    const struct strategy *s = d->strategy;
    const int count = reduction_vectors(&s->reduction, s->worker);

    d->vectors = calloc((size_t)count, sizeof *d->vectors);
    for (int v = 0; d->vectors && v < count; v++)
        if (!(d->vectors[v] = v < count - 1 ? reals_new(network_exchange_count(s->network))
                                            : network_exchange(s->network)))
            return 0;
    d->alone = s->workers == 1 ? reals_new(d->part.total) : NULL;
    return d->vectors && (d->alone || s->workers > 1);
}

int dense_exchange_init(struct dense_exchange *d, const struct strategy *s, struct error *e)
{
    int rc;

    d->strategy = s;
    if ((rc = dense_part_init(&d->part, s->network, e)) < 0)
        return rc;
    d->bucket = exchange_bucket(d->part.total, s->options.bucket_bytes, s->workers);
    return s->worker < 0 || vectors_new(d) ? OK : error_memory(e, NULL, "to start");
}

int dense_exchange_open(struct dense_exchange *d, const char *transport, size_t rounded, struct error *e)
{
    const struct strategy *s = d->strategy;
    const struct transport_plan plan = {
        .world = s->world,
        .network = s->network,
        .total = d->part.total,
        .bucket = d->bucket,
        .buckets = bucket_count(d->part.total, d->bucket),
        .ranks = s->workers,
        .rank = s->worker,
        .reduction = &s->reduction,
        .clock = s->options.clock,
        .part = &d->part,
        .rounded = dense_part_below(&d->part, rounded),
    };

    if (s->workers > 1)
        return transport_choose(&d->transport, &plan, transport, e);
    return s->worker < 0 ? OK : transport_alone_new(&d->transport, &plan, d->alone, e);
}

void dense_exchange_release(struct dense_exchange *d)
{
    const struct strategy *s = d->strategy;

    if (d->transport)
        d->transport->operations->free(d->transport);
    for (int v = 0; d->vectors && v < reduction_vectors(&s->reduction, s->worker) - 1; v++)
        free(d->vectors[v]);
    free(d->vectors);
    free(d->alone);
    dense_part_release(&d->part);
}
