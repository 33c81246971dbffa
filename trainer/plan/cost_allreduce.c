/*
 * The all-reduce as trainer/collective/ makes it: in shared memory on one host, by messages between hosts of
 * one worker, in two levels where hosts have several; and the ring.
 */
#include "trainer/plan/cost.h"

#include "trainer/collective/narrowing.h"
#include "trainer/collective/tally.h"
#include "trainer/plan/pipeline.h"

enum { PROCESSOR, LINK, RESOURCES };

struct exchange_case {
    const struct plan_work *work;
    const struct plan_machine *machine;
    int ranks, hosts, group; /* group: ranks of a host */
    int lanes;               /* ranks of a host that exchange with other hosts, each a part of a bucket */
    size_t bucket;           /* elements */
    struct pipeline *pipeline;
    struct computing computing;
};

static double bucket_bytes(const struct exchange_case *c, size_t q)
{
    const struct extent x = bucket_extent(c->work->elements, c->bucket, q);

    return (double)(x.to - x.from) * sizeof(float);
}

/* The same in messages. */
static double sent_bytes(const struct exchange_case *c, size_t q)
{
    return (double)narrowing_bytes(bucket_extent(c->work->elements, c->bucket, q), c->work->rounded);
}

static int is_last(const struct exchange_case *c, size_t q)
{
    return q + 1 == bucket_count(c->work->elements, c->bucket);
}

/* The last bucket leaves only when backward has ended. */
static void compute_until(struct exchange_case *c, size_t q)
{
    const struct plan_work *w = c->work;
    const struct extent x = bucket_extent(w->elements, c->bucket, q);

    computing_until(&c->computing, is_last(c, q) ? w->forward + w->backward : plan_final_at(w, x.from));
}

/* All ranks of one host, in memory: each adds its slice of the bucket. */
static void in_memory(struct exchange_case *c, size_t q)
{
    pipeline_then(c->pipeline, PROCESSOR, plan_adding(c->machine, bucket_bytes(c, q), c->ranks),
                  c->machine->memory.latency, c->computing.last);
}

/* First the ranks of each host in memory, by lanes; then every host adds a slice, and sends it to all others. */
static void between_hosts(struct exchange_case *c, size_t q)
{
    const struct plan_machine *m = c->machine;
    const double lane = bucket_bytes(c, q) / c->lanes, slice = lane / c->hosts, others = c->hosts - 1;
    const double sent = sent_bytes(c, q) / c->lanes / c->hosts;
    const double tallies = is_last(c, q) ? others * c->group * (double)sizeof(struct tally_part) : 0;
    const double wire = (plan_wire_bytes(others * c->lanes, sent)) / m->network.bandwidth;
    const double local = c->group > 1 ? plan_adding(m, lane * c->group, c->lanes) : 0;
    size_t at = pipeline_then(c->pipeline, PROCESSOR, local + others * m->message, 0, c->computing.last);

    at = pipeline_then(c->pipeline, LINK, wire + tallies / m->network.bandwidth, m->network.latency, at);
    at = pipeline_then(c->pipeline, PROCESSOR, plan_adding(m, slice * c->hosts, c->lanes) + 2 * others * m->message, 0,
                       at);
    at = pipeline_then(c->pipeline, LINK, wire, m->network.latency, at);
    pipeline_then(c->pipeline, PROCESSOR, others * m->message, 0, at);
}

/* 2 (n - 1) turns; of a host only the last rank sends to another. The chunks of other buckets fill the link while one
 * is on its way. */
static void round_the_ring(struct exchange_case *c, size_t q)
{
    const struct plan_machine *m = c->machine;
    const double turns = 2 * (c->ranks - 1), chunk = bucket_bytes(c, q) / c->ranks;
    const double tallies = is_last(c, q) ? (c->ranks - 1) * (double)sizeof(struct tally_part) : 0;
    const struct plan_link *l = c->hosts > 1 ? &m->network : &m->memory;
    const double sent = sent_bytes(c, q) / c->ranks;
    const double bytes = c->hosts > 1 ? plan_wire_bytes(turns, sent) : turns * sent * c->ranks;
    const double busy = (bytes + tallies) / l->bandwidth;
    const double adding = (c->ranks - 1) * plan_adding(m, chunk, c->group);
    const double delay = turns * (l->latency + 2 * m->message);
    const size_t at = pipeline_then(c->pipeline, LINK, busy, delay, c->computing.last);

    pipeline_then(c->pipeline, PROCESSOR, adding, 0, at);
}

static int lay_out(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                   void (*exchange)(struct exchange_case *c, size_t q), double *seconds, struct error *e)
{
    const int group = s->workers < s->per_host ? s->workers : s->per_host;
    struct exchange_case c = { .work = w,
                               .machine = m,
                               .ranks = s->workers,
                               .hosts = plan_hosts(s),
                               .group = group,
                               .lanes = plan_fewest(s),
                               .bucket = exchange_bucket(w->elements, w->bucket_bytes, s->workers) };
    int rc = pipeline_new(&c.pipeline, RESOURCES, e);

    if (rc < 0)
        return rc;
    c.computing = (struct computing){ w, c.pipeline, PROCESSOR, plan_crowding(m, group), 0, PIPELINE_NOTHING };
    for (size_t q = 0; q < bucket_count(w->elements, c.bucket); q++) {
        compute_until(&c, q);
        if (s->workers > 1)
            exchange(&c, q);
    }
    if ((rc = pipeline_run(c.pipeline, seconds, e)) == OK)
        *seconds += c.computing.crowding * w->update;
    pipeline_free(c.pipeline);
    return rc;
}

static double tally_bytes(double count)
{
    return count * (double)sizeof(struct tally_part);
}

/* Of the whole vector, in messages. */
static double whole_bytes(const struct plan_work *w)
{
    return (double)narrowing_bytes((struct extent){ 0, w->elements }, w->rounded);
}

static int allreduce_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                          struct plan_cost *out, struct error *e)
{
    const double ranks = s->workers, hosts = plan_hosts(s), all = (double)w->elements * sizeof(float);
    const int rc = lay_out(w, m, s, hosts > 1 ? between_hosts : in_memory, &out->seconds, e);

    out->steps = 1 / out->seconds;
    out->bytes = hosts > 1 ? 2 * (hosts - 1) / hosts * whole_bytes(w) + tally_bytes((hosts - 1) * ranks / hosts)
                           : 2 * (ranks - 1) / ranks * all + tally_bytes(ranks - 1);
    return rc;
}

static int ring_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                     struct plan_cost *out, struct error *e)
{
    const double ranks = s->workers;
    const int rc = lay_out(w, m, s, round_the_ring, &out->seconds, e);

    out->steps = 1 / out->seconds;
    out->bytes = 2 * (ranks - 1) / ranks * whole_bytes(w) + tally_bytes(ranks - 1);
    return rc;
}

const struct plan_strategy plan_allreduce = {
    .name = "mpi",
    .help = "an all-reduce, in shared memory on each host and by messages between hosts",
    .cost = allreduce_cost,
};

const struct plan_strategy plan_ring = {
    .name = "ring",
    .help = "an all-reduce round a ring of all ranks",
    .cost = ring_cost,
};
