/*
 * ring.c - the all-reduce round a ring of n ranks, by messages, each rank to the next one (source: strategies.md, 7.3).
 *
 * Each bucket is cut into n chunks. Turns 0 to n - 2: chunk c starts at rank c, and each rank that gets it adds its own
 * and passes it on, so that rank c - 1 completes it. Turns n - 1 to 2 n - 3: the complete chunks go round, and each
 * rank keeps them. In turn t rank r sends chunk r - t and gets chunk r - 1 - t. So chunk c is added as
 * ((c + (c + 1)) + (c + 2)) + ...: an order of its own for each chunk, which changes with the size of the buckets.
 * Volume a rank and step: 2 (n - 1) / n of the vector.
 *
 * The messages of the last bucket's first half also carry the tallies, each one rank's.
 *
 * A rank only sees the rank before it, which may itself be waiting. So each rank that has waited for half of its
 * deadline tells the next one, and the one that was not told reports that the rank before it is late.
 */
#include "trainer/collective/transport.h"

#include "trainer/collective/narrowing.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_SECONDS 15 /* that a rank waits after the deadline for one that knows better who is late */
enum { TAG_NOTICE = WORLD_TAG_ASIDE + 1, NO_STEP = -2 /* and none follows it */ };

struct ring_turn {
    struct message out, in;
};

struct ring {
    struct transport base;
    int turns;                /* of a bucket: 2 (ranks - 1) */
    real *vector;             /* of this rank, which has one */
    struct ring_turn *turn;   /* (buckets, turns) */
    int *received, *sent;     /* (buckets) turns */
    real *partial, *result;   /* sums that pass; complete ones */
    real *packed;             /* complete ones as they travel; NULL: as they are */
    char *tail_out, *tail_in; /* (ranks - 1, tail_bytes) the last bucket's first half: chunk, then tally */
    size_t tail_bytes;
    struct tally_part *parts; /* (ranks) */
    char *late;
    size_t final;
    struct message notice_in, notice_out; /* of the step in which a rank waits */
    int64_t step_in, step_out;            /* their contents; step_out: the last one told */
    int64_t before_waits;                 /* the step in which the rank before said so */
    struct error error;                   /* the first error in this step; kept for complete() */
};

static int ring_rank(const struct ring *m, int r)
{
    const int n = m->base.plan.ranks;

    return (r % n + n) % n;
}

/* The chunk that this rank gets in a turn, which it sends in the next one. Turn -1: the one that it begins with. */
static struct extent chunk_in(const struct ring *m, size_t q, int turn)
{
    const struct transport_plan *p = &m->base.plan;

    return slice_extent(bucket_extent(p->total, p->bucket, q), p->ranks, ring_rank(m, p->rank - 1 - turn));
}

static size_t chunk_bytes(const struct ring *m, struct extent x)
{
    return narrowing_bytes(x, m->base.plan.rounded);
}

/* From where they are sent, and where they come. */
static real *complete_chunks(const struct ring *m)
{
    return m->packed ? m->packed : m->result;
}

/* 1: this message also carries a tally. */
static int carries_tally(const struct ring *m, size_t q, int turn)
{
    return q == m->base.plan.buckets - 1 && turn < m->base.plan.ranks - 1;
}

static struct ring_turn *turn_of(const struct ring *m, size_t q, int turn)
{
    return &m->turn[q * (size_t)m->turns + (size_t)turn];
}

static int ring_failed(const struct ring *m)
{
    return m->error.code < 0;
}

static void ring_begin(struct transport *t, int64_t step)
{
    struct ring *m = (struct ring *)t;
    const struct transport_plan *p = &t->plan;
    const int before = ring_rank(m, p->rank - 1);

    t->step = step;
    m->final = 0;
    memset(&m->error, 0, sizeof m->error);
    for (size_t q = 0; q < p->buckets; q++) {
        m->received[q] = m->sent[q] = 0;
        for (int turn = 0; turn < m->turns && !ring_failed(m); turn++) {
            const struct extent x = chunk_in(m, q, turn);
            void *room = (turn < p->ranks - 1 ? m->partial : complete_chunks(m)) + x.from;
            size_t n = chunk_bytes(m, x);

            if (carries_tally(m, q, turn)) {
                room = m->tail_in + (size_t)turn * m->tail_bytes;
                n += sizeof *m->parts;
            }
            world_receive(p->world, before, (int)q, room, n, &turn_of(m, q, turn)->in, &m->error);
        }
    }
}

/* Sends the chunk of a turn: our own in the first, then what we got and added to. */
static void send_chunk(struct ring *m, size_t q, int turn)
{
    const struct transport_plan *p = &m->base.plan;
    const struct extent x = chunk_in(m, q, turn - 1);
    real *from = turn == 0 ? m->vector : turn < p->ranks - 1 ? m->partial : complete_chunks(m);
    const void *bytes = from + x.from;
    size_t n = chunk_bytes(m, x);

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    if (turn < p->ranks - 1)
        narrowing_pack(from, x, p->rounded, from + x.from); /* here, nobody needs it any more */
    if (carries_tally(m, q, turn)) {
        char *tail = m->tail_out + (size_t)turn * m->tail_bytes;

        memcpy(tail, bytes, n);
        memcpy(tail + n, &m->parts[ring_rank(m, p->rank - turn)], sizeof *m->parts);
        bytes = tail;
        n += sizeof *m->parts;
    }
    world_send(p->world, ring_rank(m, p->rank + 1), (int)q, bytes, n, &turn_of(m, q, turn)->out, &m->error);
    m->sent[q] = turn + 1;
}

/* The chunk of a turn has come: adds our own, in the first half. */
static void take_chunk(struct ring *m, size_t q, int turn)
{
    const struct transport_plan *p = &m->base.plan;
    const struct extent x = chunk_in(m, q, turn);
    const real *parts[] = { m->partial, m->vector };

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    if (carries_tally(m, q, turn)) {
        const char *tail = m->tail_in + (size_t)turn * m->tail_bytes;

        memcpy(m->partial + x.from, tail, chunk_bytes(m, x));
        memcpy(&m->parts[ring_rank(m, p->rank - 1 - turn)], tail + chunk_bytes(m, x), sizeof *m->parts);
    }
    if (turn < p->ranks - 1) {
        narrowing_unpack(m->partial + x.from, x, p->rounded, m->partial);
        exchange_sum(turn == p->ranks - 2 ? m->result : m->partial, parts, 2, x.from, x.to);
    }
    if (p->rounded && turn == p->ranks - 2)
        narrowing_pack(m->result, x, p->rounded, m->packed + x.from);
    if (p->rounded && turn >= p->ranks - 2)
        narrowing_unpack(m->packed + x.from, x, p->rounded, m->result);
    m->received[q] = turn + 1;
}

/* Does everything that can be done now. 1: something was done. */
static int pass_on(struct ring *m)
{
    int moved = 0;

    for (size_t q = 0; q < m->final && !ring_failed(m); q++) {
        if (m->sent[q] == 0 && m->turns > 0) {
            send_chunk(m, q, 0);
            moved = 1;
        }
        while (m->received[q] < m->turns && !ring_failed(m) &&
               message_done(m->base.plan.world, &turn_of(m, q, m->received[q])->in, &m->error) == 1) {
            take_chunk(m, q, m->received[q]);
            if (m->received[q] < m->turns)
                send_chunk(m, q, m->received[q]);
            moved = 1;
        }
    }
    return moved;
}

static void ring_advance(struct transport *t, size_t ready)
{
    struct ring *m = (struct ring *)t;
    const enum phase before = phase_clock_enter(t->plan.clock, PHASE_REDUCING);

    if (ready > t->plan.buckets - 1)
        ready = t->plan.buckets - 1; /* the last one carries the tallies: complete() sends it */
    if (ready > m->final)
        m->final = ready;
    pass_on(m);
    phase_clock_enter(t->plan.clock, before);
}

/* 1: all of the step's messages are done. *first: the first bucket that is not. */
static int ring_finished(struct ring *m, size_t *first)
{
    for (*first = 0; *first < m->base.plan.buckets; ++*first) {
        if (m->received[*first] < m->turns)
            return 0;
        for (int turn = 0; turn < m->turns; turn++)
            if (message_done(m->base.plan.world, &turn_of(m, *first, turn)->out, &m->error) != 1)
                return 0;
    }
    return 1;
}

/* After half of the deadline: tells the next rank that this one waits, and learns whether the one before does. */
static void ring_notice(struct ring *m, const struct patience *patience)
{
    const struct transport_plan *p = &m->base.plan;
    struct error ignored = { 0 };

    if (p->ranks < 2 || world_ran(p->world) - patience->begun <= patience->limit / 2)
        return;
    if (m->step_out != m->base.step && message_done(p->world, &m->notice_out, &ignored) == 1) {
        m->step_out = m->base.step;
        world_send(p->world, ring_rank(m, p->rank + 1), TAG_NOTICE, &m->step_out, sizeof m->step_out, &m->notice_out,
                   &ignored);
    }
    if (message_done(p->world, &m->notice_in, &ignored) == 1) {
        m->before_waits = m->step_in;
        world_receive(p->world, ring_rank(m, p->rank - 1), TAG_NOTICE, &m->step_in, sizeof m->step_in, &m->notice_in,
                      &ignored);
    }
}

/* 1: the rank before waits itself, as it said, in this step or still in the last one, which is over here: then nothing
 * of this one has come from it. */
static int before_waits(const struct ring *m)
{
    int came = 0;

    for (size_t q = 0; q < m->base.plan.buckets; q++)
        came |= m->received[q] > 0;
    return m->before_waits == m->base.step || (m->before_waits == m->base.step - 1 && !came);
}

/* As transport_late(). A rank whose predecessor waits as well leaves the word to the one behind the rank that hangs. In
 * case that is silent, the others report later: the more messages have come, the later, since each rank has got more
 * than the one before it, from the rank behind the one that hangs on. If mpirun ends the ranks, the one behind a dead
 * rank reports, or, since nobody sees whether a rank on another host is dead, one that got none. */
static int ring_late(struct ring *m, size_t q, const struct patience *patience, struct error *e)
{
    const struct transport_plan *p = &m->base.plan;
    const double waited = world_ran(p->world) - patience->begun;
    const int late = ring_rank(m, m->received[q] < m->turns ? p->rank - 1 : p->rank + 1);
    const enum process_state state = process_judge(&world_places(p->world)[late]);
    const int knows = late == ring_rank(m, p->rank - 1) && !before_waits(m);
    double came = 0;

    for (size_t k = 0; k < p->buckets; k++)
        came += (double)m->received[k] / ((double)m->turns * (double)p->buckets);
    if (waited > patience->limit ? !knows && waited <= patience->limit + (1 + came) * LONGEST_SECONDS
                                 : state == PROCESS_LIVES || (state == PROCESS_ELSEWHERE && came > 0))
        return 0;
    memset(m->late, 0, (size_t)p->ranks);
    m->late[late] = 1;
    return transport_late_sentence(&m->base, q, m->late, patience, e);
}

static int ring_complete(struct transport *t, const struct tally_part *mine, struct tally_part *all, struct error *e)
{
    struct ring *m = (struct ring *)t;
    const enum phase before = phase_clock_enter(t->plan.clock, PHASE_REDUCING);
    struct patience p;
    size_t first = 0;
    int rc;

    m->parts[t->plan.rank] = *mine;
    m->final = t->plan.buckets;
    patience_init(&p, t->plan.world, world_deadline(t->plan.world));
    for (;;) {
        const int moved = pass_on(m), finished = !ring_failed(m) && ring_finished(m, &first);

        phase_clock_enter(t->plan.clock, PHASE_WAITING); /* until something has come */
        if (ring_failed(m))
            return error_copy(e, &m->error);
        if (finished)
            break;
        if (moved)
            patience_calm(&p);
        ring_notice(m, &p);
        if (!patience_pause(&p) && (rc = ring_late(m, first, &p, e)) < 0)
            return rc;
    }
    memcpy(all, m->parts, (size_t)t->plan.ranks * sizeof *all);
    phase_clock_enter(t->plan.clock, before);
    return OK;
}

static void ring_release(struct transport *t)
{
    struct ring *m = (struct ring *)t;

    if (!m)
        return;
    message_cancel(m->base.plan.world, &m->notice_in);
    free(m->turn);
    free(m->received);
    free(m->sent);
    free(m->vector);
    free(m->partial);
    free(m->result);
    free(m->packed);
    free(m->tail_out);
    free(m->tail_in);
    free(m->parts);
    free(m->late);
    free(m);
}

static const struct transport_operations operations = {
    .name = "ring",
    .begin = ring_begin,
    .advance = ring_advance,
    .complete = ring_complete,
    .free = ring_release,
};

static int allocate(struct ring *m, struct error *e)
{
    const struct transport_plan *p = &m->base.plan;
    const size_t ranks = (size_t)p->ranks;

    m->turns = 2 * (p->ranks - 1);
    m->tail_bytes = p->bucket * sizeof(real) + sizeof *m->parts;
    m->turn = calloc(p->buckets * (size_t)m->turns + 1, sizeof *m->turn);
    m->received = calloc(p->buckets, sizeof *m->received);
    m->sent = calloc(p->buckets, sizeof *m->sent);
    m->vector = reals_new(p->total);
    m->base.vectors = &m->vector;
    m->partial = reals_new(p->total);
    m->result = reals_new(p->total);
    m->packed = p->rounded ? reals_new(p->total) : NULL;
    m->base.result = p->ranks > 1 ? m->result : m->vector;
    m->tail_out = calloc(ranks, m->tail_bytes);
    m->tail_in = calloc(ranks, m->tail_bytes);
    m->parts = calloc(ranks, sizeof *m->parts);
    m->late = calloc(ranks, 1);
    if (!m->turn || !m->received || !m->sent || !m->vector || !m->partial || !m->result || !m->tail_out ||
        !m->tail_in || !m->parts || !m->late || (p->rounded && !m->packed))
        return error_memory(e, NULL, "to pass %zu values round %d ranks", p->total, p->ranks);
    return OK;
}

int ring_new(struct transport **out, const struct transport_plan *plan, struct error *e)
{
    struct ring *m = calloc(1, sizeof *m);
    int rc = OK;

    if (!m) {
        rc = error_memory(e, NULL, "for the ring");
    } else {
        m->base.operations = &operations;
        m->base.plan = *plan;
        m->base.step = -1;
        if ((rc = transport_messages_fit(plan, e)) == OK)
            rc = allocate(m, e);
    }
    if ((rc = world_agree(plan->world, "make room for the ring", rc, e)) < 0) {
        ring_release(m ? &m->base : NULL);
        return rc;
    }
    m->step_out = m->before_waits = NO_STEP;
    if (plan->ranks > 1 && (rc = world_receive(plan->world, ring_rank(m, plan->rank - 1), TAG_NOTICE, &m->step_in,
                                               sizeof m->step_in, &m->notice_in, e)) < 0) {
        ring_release(&m->base);
        return rc;
    }
    *out = &m->base;
    return OK;
}
