/*
 * allreduce.c - every rank holds all weights; each step the exchange vectors are added over ranks in fixed buckets,
 * from the last layer's down, while backward is still at the earlier layers, and every rank applies the same update.
 * Nothing later makes replicas equal again, so they are compared: a hash of weights and statistics travels with the
 * tally of every check_every-th step, and the run stops at the first difference.
 */
#include "trainer/strategies/allreduce.h"

#include "trainer/collective/transport.h"
#include "trainer/collective/transport_choice.h"
#include "trainer/server/table_parts.h"
#include "trainer/strategies/gathered_rows.h"
#include "trainer/strategies/shared_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct allreduce {
    struct strategy base;
    struct transport *transport;
    struct tally_part *parts; /* (workers) */
    size_t total, bucket;
    size_t rounded;        /* elements that travel as bfloat16: gradients, or none */
    transport_maker *make; /* NULL: as the options say */
};

struct allreduce_options {
    const char *transport; /* auto, shared, two-level, mpi */
    const char *sparse;    /* dense, all-gather */
    const char *exchange;  /* float32, bfloat16 */
};

_Static_assert(sizeof(struct allreduce_options) <= STRATEGY_OWN_SIZE, "they have room");

static int allreduce_step_begin(struct strategy *s, int64_t step, struct error *e)
{
    struct allreduce *a = (struct allreduce *)s;

    (void)e;
    a->transport->operations->begin(a->transport, step);
    return OK;
}

static void allreduce_ready(struct strategy *s, size_t low)
{
    struct allreduce *a = (struct allreduce *)s;

    a->transport->operations->advance(a->transport, buckets_ready(a->total, a->bucket, low));
}

static int allreduce_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    struct allreduce *a = (struct allreduce *)s;
    const struct tally_part mine = strategy_part(s, tally);
    int rc;

    if ((rc = a->transport->operations->complete(a->transport, &mine, a->parts, e)) < 0)
        return rc;
    if (mine.hashed && (rc = strategy_compare_parts(s, a->parts, e)) < 0)
        return rc;
    *tally = tally_sum(a->parts, s->workers, s->global_step, s->options.max_steps);
    if (tally->flags & TALLY_LEFT)
        return OK;
    phase_clock_enter(s->options.clock, PHASE_UPDATING);
    optimizer_measure(s->optimizer, s->global_step, a->transport->result);
    strategy_changes(s);
    optimizer_apply(s->optimizer, s->global_step, a->transport->result, 0, a->total);
    s->global_step = tally->global_step;
    return OK;
}

static int allreduce_collect(struct strategy *s, int last, int64_t *step, struct error *e)
{
    (void)last;
    (void)e;
    *step = s->global_step; /* rank 0's replica is the state */
    return OK;
}

static int allreduce_finish(struct strategy *s, struct error *e)
{
    return s->workers > 1 ? strategy_compare_replicas(s, 1, e) : OK;
}

static void allreduce_report(const struct strategy *s, struct strategy_report *r)
{
    const struct allreduce *a = (const struct allreduce *)s;
    const struct world_sent *sent = world_sent(s->world);
    const int64_t steps = s->global_step - s->options.first_step;
    int64_t bytes = 0;

    for (int w = 0; w < s->workers && s->workers > 1; w++)
        bytes += sent[w].steps + sent[w].memory;
    *r = (struct strategy_report){ .transport = a->transport->operations->name,
                                   .gradient_norm = optimizer_gradient_norm(s->optimizer) };
    r->bytes_step = steps > 0 ? (double)bytes / (double)steps : 0;
}

static void allreduce_release(struct strategy *s)
{
    struct allreduce *a = (struct allreduce *)s;

    if (a->transport)
        a->transport->operations->free(a->transport);
    free(a->parts);
    free(a);
}

static const struct strategy_operations operations = {
    .step_begin = allreduce_step_begin,
    .ready = allreduce_ready,
    .step_end = allreduce_step_end,
    .collect = allreduce_collect,
    .finish = allreduce_finish,
    .report = allreduce_report,
    .free = allreduce_release,
};

static int open_transport(struct allreduce *a, struct error *e)
{
    const struct strategy *s = &a->base;
    const struct allreduce_options *o = (const void *)s->options.own.bytes;
    const struct transport_plan plan = {
        .world = s->world,
        .network = s->network,
        .total = a->total,
        .bucket = a->bucket,
        .buckets = bucket_count(a->total, a->bucket),
        .ranks = s->workers,
        .rank = s->worker,
        .reduction = &s->reduction,
        .clock = s->options.clock,
        .rounded = a->rounded,
    };

    if (s->workers == 1) /* also of strategies without these options */
        return transport_alone_new(&a->transport, &plan, network_exchange(s->network), e);
    return a->make ? a->make(&a->transport, &plan, e) : transport_choose(&a->transport, &plan, o->transport, e);
}

static int start_gathered(struct strategy **out, const struct strategy *common, const struct allreduce_options *o,
                          struct error *e)
{
    if (!strcmp(o->exchange, "bfloat16"))
        return error_set(e, ERR_ARG, "--sparse-exchange all-gather sends float32; leave --exchange bfloat16 out");
    return gathered_rows_start(out, common, o->transport, e);
}

int allreduce_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    const struct allreduce_options *o = (const void *)common->options.own.bytes;

    if (common->options.kind == &strategy_allreduce && !strcmp(o->sparse, "all-gather") && common->workers > 1 &&
        table_parts_tables(common->network) > 0)
        return start_gathered(out, common, o, e);
    /* One worker may be of a strategy without these options. */
    return allreduce_start_with(out, common, NULL, common->workers > 1 ? o->exchange : NULL, e);
}

int allreduce_start_with(struct strategy **out, const struct strategy *common, transport_maker *make,
                         const char *exchange, struct error *e)
{
    struct allreduce *a = calloc(1, sizeof *a);
    int rc = OK;

    if (a) {
        a->base = *common;
        a->base.operations = &operations;
        a->base.holds_state = 1;
        a->make = make;
        a->parts = calloc((size_t)common->workers, sizeof *a->parts);
        a->total = network_exchange_count(common->network);
        a->bucket = exchange_bucket(a->total, common->options.bucket_bytes, common->workers);
    }
    if (!a || !a->parts)
        rc = error_memory(e, NULL, "to start the all-reduce");
    if (rc == OK && common->workers > 1) {
        a->rounded = shared_rows_rounded(exchange, common->network);
        rc = shared_rows_check_exchange(exchange, common, e);
    }
    if ((rc = world_agree(common->world, "make room for the all-reduce", rc, e)) == OK)
        rc = open_transport(a, e);
    if (rc < 0) {
        if (a)
            allreduce_release(&a->base);
        return rc;
    }
    a->base.vectors = a->transport->vectors;
    network_set_exchange(a->base.network, a->base.vectors[reduction_vectors(&common->reduction, common->worker) - 1]);
    *out = &a->base;
    return OK;
}

static size_t allreduce_rows(struct option *rows, void *own)
{
    struct allreduce_options *o = own;
    size_t count = shared_rows_transport(rows, &o->transport);

    o->sparse = "dense";
    rows[count++] = (struct option){
        OPTION_CHOICE,
        .name = "sparse-exchange",
        .value = &o->sparse,
        .argument = "HOW",
        .choices = "dense|all-gather",
        .help = "Send the gradients of tables, with --run-option mpi, as parts of the all-reduced gradient (dense, the "
                "default), or send the rows that each worker's batch uses to all others, as Horovod does (all-gather). "
                "The weights are the same."
    };
    return count + shared_rows_exchange(rows + count, &o->exchange);
}

static int allreduce_workers(const struct strategy_options *o, int ranks, struct error *e)
{
    (void)o;
    (void)e;
    return ranks;
}

static void allreduce_describe(const struct strategy_options *o, int ranks, char *text, size_t size)
{
    (void)o;
    snprintf(text, size, "%d rank%s", ranks, ranks == 1 ? "" : "s");
}

const struct strategy_kind strategy_allreduce = {
    .name = "mpi",
    .help = "on ranks that all hold the weights and all-reduce the gradients",
    .options = allreduce_rows,
    .workers = allreduce_workers,
    .describe = allreduce_describe,
    .start = allreduce_start,
};
