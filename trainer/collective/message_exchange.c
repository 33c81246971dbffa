/*
 * message_exchange.c - the all-reduce by messages, for ranks on several hosts. As in shared memory, rank r adds slice r
 * of every bucket. Per bucket:
 *
 *   WAITING   not final here yet
 *   GATHERING our slices for the others are being sent to them, theirs for us to us
 *   SPREADING our slice is added and being sent to all; the others' sums are being sent to us
 *   DONE      all of that has ended
 *
 * Ranks send to each other in pairs (exchange_partner): if all began with rank 0, its link would get more than it
 * carries while those of others are idle. That cost 2 % of a step of lenet over four links of 10 Mbit/s.
 *
 * A rank with several vectors (reduction.h) sends its slices of one after the other. The last of the last bucket also
 * carries the tally, so a step costs no message more. Messages advance only inside calls of MPI: advance() is called
 * between layers, and complete() tests, sleeps and tests again.
 * Volume a rank and step: (n - 1) / n of each of its vectors out for adding, and of one for the sums.
 */
#include "trainer/collective/transport.h"

#include "trainer/collective/narrowing.h"

#include <stdlib.h>
#include <string.h>

enum stage { WAITING, GATHERING, SPREADING, DONE };

/* with one other rank, in one bucket */
struct exchange {
    struct message *slices_out, *slices_in; /* a message for each of our vectors, and of theirs */
    struct message sum_out, sum_in;
};

struct bucket {
    enum stage stage;
    struct exchange *with; /* (ranks) */
};

struct message_exchange {
    struct transport base;
    struct bucket *buckets;
    struct exchange *exchanges; /* (buckets, ranks) */
    struct message *slices;     /* of all exchanges */
    real *memory;               /* our vectors, then result */
    real *result;
    real **incoming;          /* (reduction->count) others' vectors, of which only this rank's slices are filled */
    char *tail_out, *tail_in; /* (ranks, tail_bytes) the last bucket's last slices, then tally */
    size_t tail_bytes;
    struct tally_part *parts; /* (ranks) */
    const real **all;         /* (reduction->count) the vectors to add: incoming, and our own */
    char *late;
    size_t final;
    struct error error; /* the first error in this step; kept for complete() */
};

static struct extent slice_of(const struct message_exchange *m, size_t q, int r)
{
    const struct transport_plan *p = &m->base.plan;

    return slice_extent(bucket_extent(p->total, p->bucket, q), p->ranks, r);
}

static size_t bytes_of(const struct message_exchange *m, struct extent x)
{
    return narrowing_bytes(x, m->base.plan.rounded);
}

static int message_exchange_failed(const struct message_exchange *m)
{
    return m->error.code < 0;
}

static void message_exchange_begin(struct transport *t, int64_t step)
{
    struct message_exchange *m = (struct message_exchange *)t;
    struct transport_plan *p = &t->plan;

    t->step = step;
    m->final = 0;
    memset(&m->error, 0, sizeof m->error);
    for (size_t q = 0; q < p->buckets; q++) {
        struct extent mine = slice_of(m, q, p->rank);
        int last = q == p->buckets - 1;

        m->buckets[q].stage = WAITING;
        for (int r = 0; r < p->ranks && !message_exchange_failed(m); r++) {
            struct exchange *x = &m->buckets[q].with[r];
            struct extent theirs = slice_of(m, q, r);
            const int vectors = reduction_vectors(p->reduction, r);

            if (r == p->rank)
                continue;
            for (int v = 0; v < vectors && !message_exchange_failed(m); v++)
                if (last && v == vectors - 1)
                    world_receive(p->world, r, (int)(2 * q), m->tail_in + (size_t)r * m->tail_bytes,
                                  bytes_of(m, mine) + sizeof(struct tally_part), &x->slices_in[v], &m->error);
                else
                    world_receive(p->world, r, (int)(2 * q), m->incoming[p->reduction->first[r] + v] + mine.from,
                                  bytes_of(m, mine), &x->slices_in[v], &m->error);
            if (!message_exchange_failed(m))
                world_receive(p->world, r, (int)(2 * q) + 1, m->result + theirs.from, bytes_of(m, theirs), &x->sum_in,
                              &m->error);
        }
    }
}

static void send_slice(struct message_exchange *m, size_t q, int r, int v)
{
    struct transport_plan *p = &m->base.plan;
    const struct extent theirs = slice_of(m, q, r);
    real *vector = m->base.vectors[v];
    const void *bytes = vector + theirs.from;
    size_t n = bytes_of(m, theirs);

    narrowing_pack(vector, theirs, p->rounded, vector + theirs.from); /* here, nobody needs it any more */
    if (q == p->buckets - 1 && v == reduction_vectors(p->reduction, p->rank) - 1) {
        char *tail = m->tail_out + (size_t)r * m->tail_bytes;

        memcpy(tail, bytes, n);
        memcpy(tail + n, &m->parts[p->rank], sizeof *m->parts);
        bytes = tail;
        n += sizeof *m->parts;
    }
    world_send(p->world, r, (int)(2 * q), bytes, n, &m->buckets[q].with[r].slices_out[v], &m->error);
}

static void send_slices(struct message_exchange *m, size_t q)
{
    struct transport_plan *p = &m->base.plan;

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    for (int k = 0; k < p->ranks; k++) {
        const int r = exchange_partner(p->ranks, p->rank, k);

        for (int v = 0; v < reduction_vectors(p->reduction, p->rank) && !message_exchange_failed(m); v++)
            if (r != p->rank)
                send_slice(m, q, r, v);
    }
    m->buckets[q].stage = GATHERING;
}

/* The sum of our slice, and in the place of our own vector's what is sent of it. */
static void add_slice(struct message_exchange *m, struct extent mine)
{
    const struct transport_plan *p = &m->base.plan;
    const int first = p->reduction->first[p->rank], own = reduction_vectors(p->reduction, p->rank);

    for (int v = 0; v < p->reduction->count && p->rounded; v++)
        if (v >= first && v < first + own)
            narrowing_round(m->base.vectors[v - first], mine, p->rounded);
        else
            narrowing_unpack(m->incoming[v] + mine.from, mine, p->rounded, m->incoming[v]);
    reduction_sum(p->reduction, m->result, m->all, mine.from, mine.to);
    if (!p->rounded)
        return;
    narrowing_round(m->result, mine, p->rounded);
    narrowing_pack(m->result, mine, p->rounded, m->base.vectors[0] + mine.from);
}

static void take_sums(struct message_exchange *m, size_t q)
{
    const struct transport_plan *p = &m->base.plan;

    for (int r = 0; r < p->ranks && p->rounded; r++)
        if (r != p->rank) {
            const struct extent theirs = slice_of(m, q, r);

            narrowing_unpack(m->result + theirs.from, theirs, p->rounded, m->result);
        }
}

static void spread_sum(struct message_exchange *m, size_t q)
{
    struct transport_plan *p = &m->base.plan;
    struct extent mine = slice_of(m, q, p->rank);
    const real *sum = (p->rounded ? m->base.vectors[0] : m->result) + mine.from;

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    if (q == p->buckets - 1)
        for (int r = 0; r < p->ranks; r++) {
            const char *tail = m->tail_in + (size_t)r * m->tail_bytes;

            if (r == p->rank)
                continue;
            memcpy(m->incoming[p->reduction->first[r + 1] - 1] + mine.from, tail, bytes_of(m, mine));
            memcpy(&m->parts[r], tail + bytes_of(m, mine), sizeof *m->parts);
        }
    add_slice(m, mine);
    for (int k = 0; k < p->ranks && !message_exchange_failed(m); k++) {
        const int r = exchange_partner(p->ranks, p->rank, k);

        if (r != p->rank)
            world_send(p->world, r, (int)(2 * q) + 1, sum, bytes_of(m, mine), &m->buckets[q].with[r].sum_out,
                       &m->error);
    }
    m->buckets[q].stage = SPREADING;
}

/* 1: all of these messages, which come in their order, are done. */
static int slices_done(struct message_exchange *m, struct message *slices, int count)
{
    int v = 0;

    while (v < count && message_done(m->base.plan.world, &slices[v], &m->error) == 1)
        v++;
    return v == count;
}

/* 1: the messages of this bucket's stage with all other ranks are done. late[r]: with which they are not. */
static int all_done(struct message_exchange *m, size_t q, int spreading, char *late)
{
    const struct transport_plan *p = &m->base.plan;
    int done = 1;

    for (int r = 0; r < p->ranks; r++) {
        struct exchange *x = &m->buckets[q].with[r];
        int in, out = !spreading;

        if (r == p->rank)
            continue;
        in = spreading ? message_done(p->world, &x->sum_in, &m->error) == 1
                       : slices_done(m, x->slices_in, reduction_vectors(p->reduction, r));
        if (spreading && in)
            out = slices_done(m, x->slices_out, reduction_vectors(p->reduction, p->rank)) &&
                  message_done(p->world, &x->sum_out, &m->error) == 1;
        late[r] = !in || !out;
        done = done && !late[r];
    }
    return done;
}

/* Does everything that can be done now. 1: something was done. */
static int progress(struct message_exchange *m)
{
    int moved = 0;

    for (size_t q = 0; q < m->base.plan.buckets && !message_exchange_failed(m); q++) {
        enum stage before = m->buckets[q].stage;

        if (before == WAITING && q < m->final)
            send_slices(m, q);
        if (m->buckets[q].stage == GATHERING && all_done(m, q, 0, m->late))
            spread_sum(m, q);
        if (m->buckets[q].stage == SPREADING && all_done(m, q, 1, m->late)) {
            take_sums(m, q);
            m->buckets[q].stage = DONE;
        }
        moved |= m->buckets[q].stage != before;
    }
    return moved;
}

static void message_exchange_advance(struct transport *t, size_t ready)
{
    struct message_exchange *m = (struct message_exchange *)t;
    const enum phase before = phase_clock_enter(t->plan.clock, PHASE_REDUCING);

    if (ready > t->plan.buckets - 1)
        ready = t->plan.buckets - 1; /* the last one carries the tally: complete() sends it */
    if (ready > m->final)
        m->final = ready;
    progress(m);
    phase_clock_enter(t->plan.clock, before);
}

static int finished(const struct message_exchange *m, size_t *first)
{
    for (*first = 0; *first < m->base.plan.buckets; ++*first)
        if (m->buckets[*first].stage != DONE)
            return 0;
    return 1;
}

static int message_exchange_complete(struct transport *t, const struct tally_part *mine, struct tally_part *all,
                                     struct error *e)
{
    struct message_exchange *m = (struct message_exchange *)t;
    const enum phase before = phase_clock_enter(t->plan.clock, PHASE_REDUCING);
    struct patience p;
    size_t first;
    int rc;

    m->parts[t->plan.rank] = *mine;
    m->final = t->plan.buckets;
    patience_init(&p, t->plan.world, world_deadline(t->plan.world));
    for (;;) {
        if (progress(m))
            patience_calm(&p);
        phase_clock_enter(t->plan.clock, PHASE_WAITING); /* until something can be sent or added */
        if (message_exchange_failed(m))
            return error_copy(e, &m->error);
        if (finished(m, &first))
            break;
        if (patience_pause(&p))
            continue;
        all_done(m, first, m->buckets[first].stage == SPREADING, m->late);
        if ((rc = transport_late(t, first, m->late, &p, e)) < 0)
            return rc;
    }
    memcpy(all, m->parts, (size_t)t->plan.ranks * sizeof *all);
    phase_clock_enter(t->plan.clock, before);
    return OK;
}

static void message_exchange_release(struct transport *t)
{
    struct message_exchange *m = (struct message_exchange *)t;

    if (!m)
        return;
    if (m->incoming)
        for (int v = 0; v < t->plan.reduction->count; v++)
            free(m->incoming[v]);
    free(m->buckets);
    free(m->exchanges);
    free(m->slices);
    free(t->vectors);
    free(m->memory);
    free(m->incoming);
    free(m->tail_in);
    free(m->tail_out);
    free(m->parts);
    free(m->all);
    free(m->late);
    free(m);
}

static const struct transport_operations operations = {
    .name = "messages",
    .begin = message_exchange_begin,
    .advance = message_exchange_advance,
    .complete = message_exchange_complete,
    .free = message_exchange_release,
};

static real *vector_of(size_t n)
{
    size_t bytes = (n * sizeof(real) + 63) / 64 * 64 + 64;
    real *v = aligned_alloc(64, bytes);

    if (v)
        memset(v, 0, bytes);
    return v;
}

/* Gives each exchange its messages out of m->slices. */
static void place_messages(struct message_exchange *m, const struct transport_plan *p)
{
    const int own = reduction_vectors(p->reduction, p->rank);
    struct message *at = m->slices;

    for (size_t q = 0; q < p->buckets; q++) {
        m->buckets[q].with = m->exchanges + q * (size_t)p->ranks;
        for (int r = 0; r < p->ranks; r++) {
            struct exchange *x = &m->buckets[q].with[r];

            x->slices_out = at;
            x->slices_in = at += own;
            at += reduction_vectors(p->reduction, r);
        }
    }
}

static int allocate(struct message_exchange *m, const struct transport_plan *p, struct error *e)
{
    const struct reduction *reduction = p->reduction;
    const int first = reduction->first[p->rank], own = reduction_vectors(reduction, p->rank);
    const size_t ranks = (size_t)p->ranks, all = (size_t)reduction->count, aligned = (p->total + 15) / 16 * 16;
    int bad;

    m->tail_bytes = (p->bucket * sizeof(real) + sizeof(struct tally_part) + 63) / 64 * 64;
    m->buckets = calloc(p->buckets, sizeof *m->buckets);
    m->exchanges = calloc(p->buckets * ranks, sizeof *m->exchanges);
    m->slices = calloc(p->buckets * (ranks * (size_t)own + all), sizeof *m->slices);
    m->memory = vector_of(aligned * ((size_t)own + 1));
    m->base.vectors = calloc((size_t)own, sizeof *m->base.vectors);
    m->incoming = calloc(all, sizeof *m->incoming);
    m->tail_in = calloc(ranks, m->tail_bytes);
    m->tail_out = calloc(ranks, m->tail_bytes);
    m->parts = calloc(ranks, sizeof *m->parts);
    m->all = calloc(all, sizeof *m->all);
    m->late = calloc(ranks, 1);
    bad = !m->buckets || !m->exchanges || !m->slices || !m->memory || !m->base.vectors || !m->incoming || !m->tail_in ||
          !m->tail_out || !m->parts || !m->all || !m->late;
    for (int v = 0; !bad && v < reduction->count; v++)
        if (v < first || v >= first + own) /* pages outside this rank's slices are never touched later */
            bad = !(m->incoming[v] = calloc(p->total, sizeof(real)));
    if (bad)
        return error_memory(e, NULL, "to exchange %zu values with %d ranks", p->total, p->ranks);
    for (int v = 0; v < own; v++)
        m->base.vectors[v] = m->memory + aligned * (size_t)v;
    m->result = m->memory + aligned * (size_t)own;
    m->base.result = m->result;
    for (int v = 0; v < reduction->count; v++)
        m->all[v] = v >= first && v < first + own ? m->base.vectors[v - first] : m->incoming[v];
    place_messages(m, p);
    return OK;
}

int message_exchange_new(struct transport **out, const struct transport_plan *plan, struct error *e)
{
    struct message_exchange *m = calloc(1, sizeof *m);
    int rc = OK;

    if (!m) {
        rc = error_memory(e, NULL, "for the message exchange");
    } else {
        m->base.operations = &operations;
        m->base.plan = *plan;
        m->base.step = -1;
        if ((rc = transport_messages_fit(plan, e)) == OK)
            rc = allocate(m, plan, e);
    }
    rc = world_agree(plan->world, "make room for the exchange", rc, e);
    if (rc < 0) {
        message_exchange_release(m ? &m->base : NULL);
        return rc;
    }
    *out = &m->base;
    return OK;
}
