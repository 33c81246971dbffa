/*
 * allreduce.c - every rank holds all weights; each step the exchange vectors are added over ranks in fixed buckets,
 * from the last layer's down, while backward is still at the earlier layers, and every rank applies the same update.
 * Nothing later makes replicas equal again, so they are compared: a hash of weights and statistics travels with the
 * tally of every check_every-th step, and the run stops at the first difference.
 */
#include "trainer/strategies/allreduce.h"

#include "trainer/collective/transports/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct allreduce {
    struct strategy base;
    struct transport *transport;
    struct tally_part *parts; /* (workers) */
    size_t total, bucket;
};

struct allreduce_options {
    const char *transport; /* auto, shared, mpi */
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

static int compare_replicas(const struct allreduce *a, struct error *e)
{
    char ranks[120] = "";
    size_t used = 0;

    for (int r = tally_differs(a->parts, a->base.workers, 1); r > 0 && used + 12 < sizeof ranks;
         r = tally_differs(a->parts, a->base.workers, r + 1))
        used += (size_t)snprintf(ranks + used, sizeof ranks - used, "%s%d", used ? ", " : "", r);
    if (!used)
        return OK;
    return error_set(e, ERR_CORRUPT, "replicas differ before step %lld: the weights of rank %s are not those of rank 0",
                     (long long)a->base.global_step, ranks);
}

static int allreduce_step_end(struct strategy *s, struct tally *tally, struct error *e)
{
    struct allreduce *a = (struct allreduce *)s;
    const struct tally_part mine = strategy_part(s, tally);
    int rc;

    if ((rc = a->transport->operations->complete(a->transport, &mine, a->parts, e)) < 0)
        return rc;
    if (mine.hashed && (rc = compare_replicas(a, e)) < 0)
        return rc;
    *tally = tally_sum(a->parts, s->workers, s->global_step, s->options.max_steps);
    if (tally->flags & TALLY_LEFT)
        return OK;
    phase_clock_enter(s->options.clock, PHASE_UPDATING);
    optimizer_measure(s->optimizer, s->global_step, a->transport->result);
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
    const uint64_t hash = s->workers > 1 ? exchange_replica_hash(s->network) : 0;
    const enum phase before = phase_clock_enter(s->options.clock, PHASE_WAITING);
    int rc = world_same(s->world, "end its last step", hash, "replicas differ after the last step", e);

    phase_clock_enter(s->options.clock, before);
    return rc == ERR_ARG && e ? (e->code = ERR_CORRUPT) : rc;
}

static void allreduce_report(const struct strategy *s, struct strategy_report *r)
{
    const struct allreduce *a = (const struct allreduce *)s;
    const double own = (double)slices_count(a->total, a->bucket, s->workers, s->worker);
    const int vectors = reduction_vectors(&s->reduction, s->worker);

    /* Other ranks get this rank's whole vectors except its own slices, and the sums of its own slices, once each. */
    *r = (struct strategy_report){ .waited = a->transport->waited,
                                   .transport = a->transport->operations->name,
                                   .gradient_norm = optimizer_gradient_norm(s->optimizer) };
    r->bytes_step = sizeof(real) * (((double)a->total - own) * vectors + own * (s->workers - 1)) +
                    sizeof(struct tally_part) * (double)(s->workers - 1);
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
    struct transport_plan plan = {
        s->world,   s->network, a->total,      a->bucket,       bucket_count(a->total, a->bucket),
        s->workers, s->worker,  &s->reduction, s->options.clock
    };
    const struct allreduce_options *o = (const void *)s->options.own.bytes;
    int shared, rc = ERR_ARG;

    if (s->workers == 1) /* also of strategies without these options */
        return transport_alone_new(&a->transport, &plan, network_exchange(s->network), e);
    shared = !strcmp(o->transport, "shared");
    if (shared && !world_one_host(s->world))
        return error_set(e, ERR_ARG, "--transport shared: the ranks are not all on one host");
    if (shared || (!strcmp(o->transport, "auto") && world_one_host(s->world)))
        rc = shared_window_new(&a->transport, &plan, e);
    /* A host may have no shared memory (a container's /dev/shm): all ranks agreed on that, so all continue. */
    if (rc < 0 && !shared)
        rc = message_exchange_new(&a->transport, &plan, e);
    return rc;
}

int allreduce_start(struct strategy **out, const struct strategy *common, struct error *e)
{
    struct allreduce *a = calloc(1, sizeof *a);
    int rc = OK;

    if (a) {
        a->base = *common;
        a->base.operations = &operations;
        a->parts = calloc((size_t)common->workers, sizeof *a->parts);
        a->total = network_exchange_count(common->network);
        a->bucket = common->options.bucket_bytes / sizeof(real) / EXCHANGE_ALIGNMENT * EXCHANGE_ALIGNMENT;
        if (a->bucket == 0)
            a->bucket = EXCHANGE_ALIGNMENT;
    }
    if (!a || !a->parts)
        rc = error_memory(e, NULL, "to start the all-reduce");
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

    o->transport = "auto";
    rows[0] = (struct option){
        OPTION_CHOICE,
        .name = "transport",
        .value = &o->transport,
        .argument = "HOW",
        .choices = "auto|shared|mpi",
        .help = "Send gradients, with --run-option mpi, through shared memory (shared) or in MPI messages (mpi). "
                "Default: auto, which is shared if all ranks are on one host."
    };
    return 1;
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
    .clips = 1,
    .options = allreduce_rows,
    .workers = allreduce_workers,
    .describe = allreduce_describe,
    .start = allreduce_start,
};
