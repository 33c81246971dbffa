/*
 * two_level.c - the all-reduce of ranks on several hosts, some of which have several ranks: the ranks of a host add
 * their vectors in shared memory, and only the sums of hosts travel. 2 (M - 1) / M of the vector leaves and reaches
 * each of M hosts in a step, however many ranks it has.
 *
 * Each bucket is divided into lanes (lanes.h), and a rank of each host carries one: all ranks of a host send side by
 * side. A carrier's slice of a lane, with the carriers on other hosts, goes through the
 * stages of message_exchange.c:
 *
 *   WAITING   not final yet on all ranks of this host
 *   GATHERING the host's sum of the lane is made; its slices are being sent to the other hosts' carriers, theirs to us
 *   SPREADING our slice is added over hosts and being sent to them; the sums of their slices are being sent to us
 *   DONE      all of that has ended: the sums of the lane are in the memory that the host shares
 *
 * In shared memory, besides the vectors and the sums, are counters of each rank: how many buckets are final, and how
 * many lanes of buckets are done; and the tallies of all ranks, two of each, as in shared_window.c. Lane 0 carries the
 * tallies of its host with the last bucket. A sum is written only after all ranks of the host said that the bucket is
 * final, also by messages from others: those need this host's sum of it. So nobody still reads that of the last step.
 *
 * The order of adding is by rank, or by the tree, first within a host, then over the hosts.
 *
 * Who reports a missed deadline: a carrier that misses a rank of its own host knows which, so it is the first; then a
 * rank that waits for a carrier which does not even look for messages; last a carrier that misses a whole host
 * of several ranks (places_before).
 */
#include "trainer/collective/transport.h"

#include "trainer/collective/lanes.h"
#include "trainer/collective/narrowing.h"
#include "trainer/collective/places.h"
#include "trainer/collective/shared_memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum two_level_stage { WAITING, GATHERING, SPREADING, DONE };

/* with the carrier on one other host, in one bucket */
struct two_level_exchange {
    struct message slice_out, slice_in, sum_out, sum_in;
};

/* of one rank, in shared memory */
struct two_level_words {
    struct shared_counter final, added; /* buckets that are final; whose lane is done */
    _Atomic uint32_t looks;             /* how often a waiting carrier has looked */
};

struct two_level {
    struct transport base;
    struct lanes lanes;
    struct shared_memory memory;
    struct two_level_words *words; /* (group) */
    struct tally_part *parts[2];   /* (ranks) */
    int count;                     /* vectors of all ranks of this host */
    const real **vectors;          /* (count) */
    struct tree_node *nodes;       /* (hosts) with micro-shards, what the sum of each host is */
    real *result;
    real *sum;         /* of this host, of which only our lane is filled; the vector itself if its rank is alone */
    real **incoming;   /* (hosts) other hosts' sums, of which only our slices are filled */
    const real **sums; /* (hosts) the parts to add: incoming, and our own sum */
    char **tail_out, **tail_in;           /* (hosts) lane 0, last bucket: slice, then the host's tallies */
    enum two_level_stage *stages;         /* (buckets) */
    struct two_level_exchange *exchanges; /* (buckets, hosts) */
    size_t *lane_elements;                /* (group) of all lanes that a rank carries */
    char *late;                           /* (ranks) */
    uint32_t first;                       /* counters' value before this step's first bucket */
    size_t final, done;                   /* of this step, this rank */
    uint32_t looks_seen;                  /* of the carrier waited for */
    struct error error;                   /* the first error in this step; kept for complete() */
};

static struct extent lane_of(const struct two_level *m, size_t q, int lane)
{
    return slice_extent(bucket_extent(m->base.plan.total, m->base.plan.bucket, q), m->lanes.count, lane);
}

/* The part of our lane that the carrier on a host adds. */
static struct extent lane_slice(const struct two_level *m, size_t q, int host)
{
    return slice_extent(lane_of(m, q, m->lanes.lane), m->lanes.hosts, host);
}

static size_t extent_bytes(const struct two_level *m, struct extent x)
{
    return narrowing_bytes(x, m->base.plan.rounded);
}

static int two_level_failed(const struct two_level *m)
{
    return m->error.code < 0;
}

/* 1: the messages of this bucket carry tallies. */
static int has_tail(const struct two_level *m, size_t q)
{
    return m->lanes.lane == 0 && q == m->base.plan.buckets - 1;
}

static struct two_level_exchange *exchange_with(const struct two_level *m, size_t q, int host)
{
    return &m->exchanges[q * (size_t)m->lanes.hosts + (size_t)host];
}

/* Appends the tallies of a host's ranks to bytes, or takes them from there. Returns their size. */
static size_t pack_parts(const struct two_level *m, int host, char *bytes, int unpack)
{
    struct tally_part *parts = m->parts[m->base.step & 1];
    size_t n = 0;

    for (int r = 0; r < m->base.plan.ranks; r++) {
        if (m->lanes.host_of[r] != host)
            continue;
        if (unpack)
            memcpy(&parts[r], bytes + n, sizeof *parts);
        else if (bytes)
            memcpy(bytes + n, &parts[r], sizeof *parts);
        n += sizeof *parts;
    }
    return n;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static void receive_bucket(struct two_level *m, size_t q)
{
    struct world *w = m->base.plan.world;
    const struct extent mine = lane_slice(m, q, m->lanes.host);

    for (int h = 0; h < m->lanes.hosts && !two_level_failed(m); h++) {
        struct two_level_exchange *x = exchange_with(m, q, h);
        const struct extent theirs = lane_slice(m, q, h);

        if (h == m->lanes.host)
            continue;
        if (has_tail(m, q))
            world_receive(w, m->lanes.carriers[h], (int)(2 * q), m->tail_in[h],
                          extent_bytes(m, mine) + pack_parts(m, h, NULL, 0), &x->slice_in, &m->error);
        else
            world_receive(w, m->lanes.carriers[h], (int)(2 * q), m->incoming[h] + mine.from, extent_bytes(m, mine),
                          &x->slice_in, &m->error);
        if (!two_level_failed(m))
            world_receive(w, m->lanes.carriers[h], (int)(2 * q) + 1, m->result + theirs.from, extent_bytes(m, theirs),
                          &x->sum_in, &m->error);
    }
}

static void two_level_begin(struct transport *t, int64_t step)
{
    struct two_level *m = (struct two_level *)t;

    m->first += (uint32_t)(t->step >= 0 ? t->plan.buckets : 0);
    t->step = step;
    m->final = m->done = 0;
    memset(&m->error, 0, sizeof m->error);
    for (size_t q = 0; q < t->plan.buckets; q++) {
        m->stages[q] = WAITING;
        if (m->lanes.lane >= 0)
            receive_bucket(m, q);
    }
}

static int final_on_host(const struct two_level *m, size_t q)
{
    for (int k = 0; k < m->lanes.group; k++)
        if (!shared_counter_reached(&m->words[k].final, m->first + (uint32_t)q + 1))
            return 0;
    return 1;
}

static void add_host(struct two_level *m, struct extent x)
{
    const struct reduction *r = m->base.plan.reduction;

    if (m->count > 1 && r->micro_shards)
        reduction_tree_sum(m->sum, m->vectors, r->nodes + r->first[m->lanes.members[0]], m->count, x.from, x.to);
    else if (m->count > 1)
        exchange_sum(m->sum, m->vectors, m->count, x.from, x.to);
}

static void add_hosts(struct two_level *m, struct extent x)
{
    if (m->base.plan.reduction->micro_shards)
        reduction_tree_sum(m->result, m->sums, m->nodes, m->lanes.hosts, x.from, x.to);
    else
        exchange_sum(m->result, m->sums, m->lanes.hosts, x.from, x.to);
}

/* Adds our lane over the host's ranks, and sends the other hosts their slices. */
static void gather_bucket(struct two_level *m, size_t q)
{
    const struct transport_plan *p = &m->base.plan;
    const struct extent lane = lane_of(m, q, m->lanes.lane);

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    add_host(m, lane);
    for (int k = 0; k < m->lanes.hosts && !two_level_failed(m); k++) {
        const int h = exchange_partner(m->lanes.hosts, m->lanes.host, k);
        const struct extent theirs = lane_slice(m, q, h);
        const void *bytes = m->sum + theirs.from;
        size_t n = extent_bytes(m, theirs);

        if (h == m->lanes.host)
            continue;
        narrowing_pack(m->sum, theirs, p->rounded, m->sum + theirs.from); /* here, nobody needs it any more */
        if (has_tail(m, q)) {
            memcpy(m->tail_out[h], bytes, n);
            bytes = m->tail_out[h];
            n += pack_parts(m, m->lanes.host, m->tail_out[h] + n, 0);
        }
        world_send(p->world, m->lanes.carriers[h], (int)(2 * q), bytes, n, &exchange_with(m, q, h)->slice_out,
                   &m->error);
    }
    m->stages[q] = GATHERING;
}

/* The sum of our slice over the hosts, and in the place of our host's what is sent of it. */
static void add_slice(struct two_level *m, struct extent mine)
{
    const size_t rounded = m->base.plan.rounded;

    for (int h = 0; h < m->lanes.hosts && rounded; h++)
        if (h == m->lanes.host)
            narrowing_round(m->sum, mine, rounded);
        else
            narrowing_unpack(m->incoming[h] + mine.from, mine, rounded, m->incoming[h]);
    add_hosts(m, mine);
    if (!rounded)
        return;
    narrowing_round(m->result, mine, rounded);
    narrowing_pack(m->result, mine, rounded, m->sum + mine.from);
}

static void take_sums(struct two_level *m, size_t q)
{
    for (int h = 0; h < m->lanes.hosts && m->base.plan.rounded; h++)
        if (h != m->lanes.host) {
            const struct extent theirs = lane_slice(m, q, h);

            narrowing_unpack(m->result + theirs.from, theirs, m->base.plan.rounded, m->result);
        }
}

/* Adds our slice over the hosts, and sends it to them. */
static void spread_bucket(struct two_level *m, size_t q)
{
    const struct transport_plan *p = &m->base.plan;
    const struct extent mine = lane_slice(m, q, m->lanes.host);
    const real *sum = (p->rounded ? m->sum : m->result) + mine.from;

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    for (int h = 0; h < m->lanes.hosts && has_tail(m, q); h++)
        if (h != m->lanes.host) {
            memcpy(m->incoming[h] + mine.from, m->tail_in[h], extent_bytes(m, mine));
            pack_parts(m, h, m->tail_in[h] + extent_bytes(m, mine), 1);
        }
    add_slice(m, mine);
    for (int k = 0; k < m->lanes.hosts && !two_level_failed(m); k++) {
        const int h = exchange_partner(m->lanes.hosts, m->lanes.host, k);

        if (h != m->lanes.host)
            world_send(p->world, m->lanes.carriers[h], (int)(2 * q) + 1, sum, extent_bytes(m, mine),
                       &exchange_with(m, q, h)->sum_out, &m->error);
    }
    m->stages[q] = SPREADING;
}

/* 1: the messages with that host are done, as far as the bucket's stage needs them. */
static int done_with(struct two_level *m, size_t q, int host)
{
    struct two_level_exchange *x = exchange_with(m, q, host);
    struct world *w = m->base.plan.world;

    if (host == m->lanes.host)
        return 1;
    if (m->stages[q] == GATHERING)
        return message_done(w, &x->slice_in, &m->error) == 1;
    return message_done(w, &x->sum_in, &m->error) == 1 && message_done(w, &x->slice_out, &m->error) == 1 &&
           message_done(w, &x->sum_out, &m->error) == 1;
}

static int done_with_all(struct two_level *m, size_t q)
{
    int done = 1;

    for (int h = 0; h < m->lanes.hosts; h++) /* all of them: that lets their messages advance */
        done &= done_with(m, q, h);
    return done;
}

/* A carrier does everything that can be done now. 1: something was done. */
static int carry(struct two_level *m)
{
    const size_t done = m->done;
    int moved = 0;

    for (size_t q = m->done; q < m->base.plan.buckets && !two_level_failed(m); q++) {
        const enum two_level_stage before = m->stages[q];

        if (before == WAITING && (q >= m->final || !final_on_host(m, q)))
            break; /* nor are later ones */
        if (before == WAITING)
            gather_bucket(m, q);
        if (m->stages[q] == GATHERING && done_with_all(m, q))
            spread_bucket(m, q);
        if (m->stages[q] == SPREADING && done_with_all(m, q)) {
            take_sums(m, q);
            m->stages[q] = DONE;
        }
        moved |= m->stages[q] != before;
        if (m->stages[q] == DONE && q == m->done)
            m->done++;
    }
    if (m->done > done)
        shared_counter_post(&m->words[m->lanes.local].added, m->first + (uint32_t)m->done);
    return moved;
}

static void two_level_advance(struct transport *t, size_t ready)
{
    struct two_level *m = (struct two_level *)t;
    const enum phase before = phase_clock_enter(t->plan.clock, PHASE_REDUCING);

    if (ready > t->plan.buckets - 1)
        ready = t->plan.buckets - 1; /* the last one carries the tally: complete() posts it */
    if (ready > m->final) {
        m->final = ready;
        shared_counter_post(&m->words[m->lanes.local].final, m->first + (uint32_t)ready);
    }
    if (m->lanes.lane >= 0)
        carry(m);
    phase_clock_enter(t->plan.clock, before);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* late: the ranks of this host that a carrier misses in bucket q; if none, all of the hosts that it misses. 1: of this
 * host. */
static int mark_late(struct two_level *m, size_t q)
{
    const struct transport_plan *p = &m->base.plan;
    int here = 0;

    memset(m->late, 0, (size_t)p->ranks);
    for (int k = 0; k < m->lanes.group && m->stages[q] == WAITING; k++)
        if (!shared_counter_reached(&m->words[k].final, m->first + (uint32_t)q + 1))
            here = m->late[m->lanes.members[k]] = 1;
    for (int r = 0; r < p->ranks && m->stages[q] != WAITING; r++)
        m->late[r] = (char)!done_with(m, q, m->lanes.host_of[r]);
    return here;
}

/* As transport_late(), by a rank that `before` kinds of ranks precede. */
static int late_after(struct two_level *m, size_t q, const struct patience *patience, int before, struct error *e)
{
    struct patience longer = *patience;

    longer.limit += places_precedence(world_deadline(m->base.plan.world), before);
    return transport_late(&m->base, q, m->late, &longer, e);
}

/* A carrier's lane, to the end of the step. */
static int finish_lane(struct two_level *m, struct error *e)
{
    const struct transport_plan *p = &m->base.plan;
    struct patience patience;
    int rc;

    patience_init(&patience, p->world, world_deadline(p->world));
    for (;;) {
        atomic_fetch_add(&m->words[m->lanes.local].looks, 1);
        if (carry(m))
            patience_calm(&patience);
        phase_clock_enter(p->clock, PHASE_WAITING); /* until something can be sent or added */
        if (two_level_failed(m))
            return error_copy(e, &m->error);
        if (m->done == p->buckets)
            return OK;
        if (!patience_pause(&patience) &&
            (rc = late_after(m, m->done, &patience, mark_late(m, m->done) ? 0 : 1, e)) < 0)
            return rc;
    }
}

/* 1: the carrier of that lane has looked for messages since the last call. */
static int carrier_looked(struct two_level *m, int lane)
{
    const uint32_t before = m->looks_seen;

    m->looks_seen = atomic_load(&m->words[lane].looks);
    return m->looks_seen != before;
}

/* Waits for the other lanes. */
static int wait_for_lanes(struct two_level *m, struct error *e)
{
    const struct transport_plan *p = &m->base.plan;
    const uint32_t all = m->first + (uint32_t)p->buckets;
    struct patience patience;
    int rc;

    phase_clock_enter(p->clock, PHASE_WAITING);
    patience_init(&patience, p->world, world_deadline(p->world));
    for (int lane = 0; lane < m->lanes.count; lane++) {
        patience_calm(&patience);
        while (!shared_counter_wait(&m->words[lane].added, all, m->memory.spin)) {
            if (carrier_looked(m, lane))
                patience_calm(&patience);
            if (patience_spend(&patience) || !patience_misses(&patience, m->lanes.members[lane]))
                continue;
            memset(m->late, 0, (size_t)p->ranks);
            m->late[m->lanes.members[lane]] = 1;
            if ((rc = late_after(m, p->buckets - 1, &patience, 1, e)) < 0)
                return rc;
        }
    }
    return OK;
}

/* What other ranks of this host read of ours: their lanes of our vector, the sums and tallies that we wrote. */
static void count_memory(const struct two_level *m)
{
    const struct transport_plan *p = &m->base.plan;
    const size_t parts = m->lanes.lane == 0 ? (size_t)(p->ranks - m->lanes.group + 1) : 1;
    const size_t own = (size_t)reduction_vectors(p->reduction, p->rank);

    for (int k = 0; k < m->lanes.group; k++)
        if (k != m->lanes.local)
            world_share(p->world, m->lanes.members[k],
                        (m->lane_elements[k] * own + m->lane_elements[m->lanes.local]) * sizeof(real) +
                            parts * sizeof(struct tally_part));
}

static int two_level_complete(struct transport *t, const struct tally_part *mine, struct tally_part *all,
                              struct error *e)
{
    struct two_level *m = (struct two_level *)t;
    const enum phase before = phase_clock_enter(t->plan.clock, PHASE_REDUCING);
    int rc = OK;

    m->parts[t->step & 1][t->plan.rank] = *mine;
    m->final = t->plan.buckets;
    shared_counter_post(&m->words[m->lanes.local].final, m->first + (uint32_t)m->final);
    if (m->lanes.lane >= 0)
        rc = finish_lane(m, e);
    if (rc < 0 || (rc = wait_for_lanes(m, e)) < 0)
        return rc;
    memcpy(all, m->parts[t->step & 1], (size_t)t->plan.ranks * sizeof *all);
    count_memory(m);
    phase_clock_enter(t->plan.clock, before);
    return OK;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static void two_level_release(struct transport *t)
{
    struct two_level *m = (struct two_level *)t;

    if (!m)
        return;
    for (int h = 0; h < m->lanes.hosts; h++) {
        if (m->incoming)
            free(m->incoming[h]);
        if (m->tail_in)
            free(m->tail_in[h]);
        if (m->tail_out)
            free(m->tail_out[h]);
    }
    if (m->count > 1)
        free(m->sum);
    free(m->base.vectors);
    free(m->nodes);
    shared_memory_close(&m->memory);
    lanes_release(&m->lanes);
    free(m->vectors);
    free(m->incoming);
    free(m->sums);
    free(m->tail_in);
    free(m->tail_out);
    free(m->stages);
    free(m->exchanges);
    free(m->lane_elements);
    free(m->late);
    free(m);
}

static const struct transport_operations operations = {
    .name = "two levels",
    .begin = two_level_begin,
    .advance = two_level_advance,
    .complete = two_level_complete,
    .free = two_level_release,
};

/* What a carrier needs for each other host. */
static int carrier(struct two_level *m)
{
    const struct transport_plan *p = &m->base.plan;
    const size_t tail = (lane_of(m, 0, 0).to - lane_of(m, 0, 0).from + EXCHANGE_ALIGNMENT) * sizeof(real) +
                        (size_t)p->ranks * sizeof(struct tally_part);
    int bad = 0;

    m->exchanges = calloc(p->buckets * (size_t)m->lanes.hosts, sizeof *m->exchanges);
    if (m->count > 1)
        m->sum = reals_new(p->total); /* pages outside this rank's lane are never touched */
    bad = !m->exchanges || (m->count > 1 && !m->sum);
    for (int h = 0; h < m->lanes.hosts && !bad; h++)
        if (h != m->lanes.host)
            bad = !(m->incoming[h] = calloc(p->total, sizeof(real))) || !(m->tail_in[h] = calloc(1, tail)) ||
                  !(m->tail_out[h] = calloc(1, tail));
    return bad;
}

static int allocate(struct two_level *m, struct error *e)
{
    const struct transport_plan *p = &m->base.plan;
    const size_t hosts = (size_t)m->lanes.hosts, group = (size_t)m->lanes.group;
    int bad;

    for (int k = 0; k < m->lanes.group; k++)
        m->count += reduction_vectors(p->reduction, m->lanes.members[k]);
    m->vectors = calloc((size_t)m->count, sizeof *m->vectors);
    m->base.vectors = calloc((size_t)reduction_vectors(p->reduction, p->rank), sizeof *m->base.vectors);
    m->nodes = calloc(hosts, sizeof *m->nodes);
    m->incoming = calloc(hosts, sizeof *m->incoming);
    m->sums = calloc(hosts, sizeof *m->sums);
    m->tail_in = calloc(hosts, sizeof *m->tail_in);
    m->tail_out = calloc(hosts, sizeof *m->tail_out);
    m->stages = calloc(p->buckets, sizeof *m->stages);
    m->lane_elements = calloc(group, sizeof *m->lane_elements);
    m->late = calloc((size_t)p->ranks, 1);
    bad = !m->vectors || !m->base.vectors || !m->nodes || !m->incoming || !m->sums || !m->tail_in || !m->tail_out ||
          !m->stages || !m->lane_elements || !m->late || (m->lanes.lane >= 0 && carrier(m));
    if (bad)
        return error_memory(e, NULL, "to exchange %zu values with %d hosts", p->total, m->lanes.hosts);
    for (int lane = 0; lane < m->lanes.count; lane++)
        m->lane_elements[lane] = slices_count(p->total, p->bucket, m->lanes.count, lane);
    return OK;
}

/* Shared memory: words, tallies, vectors, sums. */
static int two_level_map(struct two_level *m, struct error *e)
{
    const struct transport_plan *p = &m->base.plan;
    const size_t words = shared_memory_rounded((size_t)m->lanes.group * sizeof *m->words);
    const size_t parts = shared_memory_rounded((size_t)p->ranks * sizeof **m->parts);
    const size_t vector = shared_memory_rounded(p->total * sizeof(real));
    const size_t vectors = words + 2 * parts, size = vectors + vector * ((size_t)m->count + 1);
    const int rc = shared_memory_open(&m->memory, p->world, m->lanes.host_of, p->ranks, size, e);
    char *bytes = m->memory.bytes;

    if (rc < 0)
        return rc;
    m->words = m->memory.bytes;
    for (size_t turn = 0; turn < 2; turn++)
        m->parts[turn] = (struct tally_part *)(void *)(bytes + words + turn * parts);
    for (int k = 0, v = 0; k < m->lanes.group; k++)
        for (int i = 0; i < reduction_vectors(p->reduction, m->lanes.members[k]); i++, v++) {
            real *at = (real *)(void *)(bytes + vectors + vector * (size_t)v);

            m->vectors[v] = at;
            if (k == m->lanes.local)
                m->base.vectors[i] = at;
        }
    m->result = (real *)(void *)(bytes + vectors + vector * (size_t)m->count);
    m->base.result = m->result;
    if (m->count == 1)
        m->sum = m->base.vectors[0];
    for (int r = 0, from = 0; r < p->ranks && p->reduction->micro_shards; r++)
        if (r + 1 == p->ranks || m->lanes.host_of[r + 1] != m->lanes.host_of[r]) {
            m->nodes[m->lanes.host_of[r]] = lanes_node(p->reduction, from, r + 1);
            from = r + 1;
        }
    for (int h = 0; h < m->lanes.hosts; h++)
        m->sums[h] = h == m->lanes.host ? m->sum : m->incoming[h];
    return OK;
}

int two_level_new(struct transport **out, const struct transport_plan *plan, const int *host, struct error *e)
{
    struct two_level *m = calloc(1, sizeof *m);
    int rc = OK;

    if (!m) {
        rc = error_memory(e, NULL, "for the exchange in two levels");
    } else {
        m->base.operations = &operations;
        m->base.plan = *plan;
        m->base.step = -1;
        if ((rc = transport_messages_fit(plan, e)) == OK &&
            (rc = lanes_init(&m->lanes, host, plan->ranks, plan->rank, e)) == OK)
            rc = allocate(m, e);
    }
    if ((rc = world_agree(plan->world, "make room for the exchange", rc, e)) == OK)
        rc = two_level_map(m, e);
    if (rc < 0) {
        two_level_release(m ? &m->base : NULL);
        return rc;
    }
    *out = &m->base;
    return OK;
}
