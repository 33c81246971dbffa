/*
 * shared_window.c - the all-reduce of ranks on one host. All vectors and the result are in one mapping:
 *
 *   words[rank]      how far each rank is: counters that only grow (modulo 2^32), so there is nothing to reset
 *   vectors          each rank's exchange vectors, by rank; the network writes straight into them
 *   result           the sums; slice r of each bucket is written by rank r
 *
 * A rank adds its slice of a bucket when the bucket is final on every rank, and is done with a step when every rank
 * has added all its slices. So nothing needs a second copy: a rank that begins step t + 1 has finished step t, hence no
 * rank still reads its vector; and slice r of the result is overwritten only after every rank said that the bucket of
 * t + 1 is final, hence has applied step t. The parts (tallies) are read after that, so they alternate between two.
 */
#include "trainer/collective/transport.h"

#include "trainer/collective/shared_memory.h"

#include <stdlib.h>

struct words {
    struct shared_counter final, added; /* buckets this rank has made final; buckets whose slice it has added */
    _Alignas(64) struct tally_part part[2];
};

struct shared_window {
    struct transport base;
    struct words *words;
    const real **all; /* (plan.reduction->count) the vectors of all ranks */
    real *result;
    struct shared_memory memory;
    uint32_t first;      /* counters' value before this step's first bucket */
    size_t final, added; /* of this step, this rank */
    size_t *slices;      /* (ranks) elements of all slices that a rank adds */
    char *late;
};

static int wait_all(struct shared_window *s, int adding, size_t bucket, uint32_t target, struct error *e)
{
    struct transport *t = &s->base;
    struct patience p;
    int waits = 0, rc = OK;

    phase_clock_enter_bucket(t->plan.clock, PHASE_WAITING, (int)bucket);
    for (int r = 0; r < t->plan.ranks && rc == OK; r++) {
        struct shared_counter *c = adding ? &s->words[r].added : &s->words[r].final;

        if (shared_counter_reached(c, target))
            continue;
        if (!waits++)
            patience_init(&p, t->plan.world, world_deadline(t->plan.world));
        while (rc == OK && !shared_counter_wait(c, target, s->memory.spin)) {
            if (patience_spend(&p))
                continue;
            for (int k = 0; k < t->plan.ranks; k++)
                s->late[k] = !shared_counter_reached(adding ? &s->words[k].added : &s->words[k].final, target);
            rc = transport_late(t, bucket, s->late, &p, e);
        }
    }
    return rc;
}

static void shared_window_begin(struct transport *t, int64_t step)
{
    struct shared_window *s = (struct shared_window *)t;

    s->first += (uint32_t)(t->step >= 0 ? t->plan.buckets : 0);
    t->step = step;
    s->final = s->added = 0;
}

static int final_everywhere(const struct shared_window *s, size_t q)
{
    for (int r = 0; r < s->base.plan.ranks; r++)
        if (!shared_counter_reached(&s->words[r].final, s->first + (uint32_t)q + 1))
            return 0;
    return 1;
}

static void add_slice(struct shared_window *s, size_t q)
{
    const struct transport_plan *p = &s->base.plan;
    struct extent x = slice_extent(bucket_extent(p->total, p->bucket, q), p->ranks, p->rank);

    phase_clock_enter_bucket(p->clock, PHASE_REDUCING, (int)q);
    reduction_sum(p->reduction, s->result, s->all, x.from, x.to);
    s->added = q + 1;
    shared_counter_post(&s->words[p->rank].added, s->first + (uint32_t)s->added);
}

static void shared_window_advance(struct transport *t, size_t ready)
{
    struct shared_window *s = (struct shared_window *)t;
    const enum phase before = phase_clock_phase(t->plan.clock);

    if (ready > t->plan.buckets - 1)
        ready = t->plan.buckets - 1; /* the last one carries the tally: complete() posts it */
    if (ready > s->final) {
        s->final = ready;
        shared_counter_post(&s->words[t->plan.rank].final, s->first + (uint32_t)ready);
    }
    while (s->added < s->final && final_everywhere(s, s->added))
        add_slice(s, s->added);
    phase_clock_enter(t->plan.clock, before);
}

/* Rank r has read its slices of our vectors, and reads our slices of the result and our part. */
static void count_bytes(const struct shared_window *s)
{
    const struct transport_plan *p = &s->base.plan;
    const size_t vectors = (size_t)reduction_vectors(p->reduction, p->rank);

    for (int r = 0; r < p->ranks; r++)
        if (r != p->rank)
            world_share(p->world, r,
                        (s->slices[r] * vectors + s->slices[p->rank]) * sizeof(real) + sizeof(struct tally_part));
}

static int shared_window_complete(struct transport *t, const struct tally_part *mine, struct tally_part *all,
                                  struct error *e)
{
    struct shared_window *s = (struct shared_window *)t;
    const struct transport_plan *p = &t->plan;
    const enum phase before = phase_clock_enter(p->clock, PHASE_REDUCING);
    unsigned turn = (unsigned)(t->step & 1);
    int rc;

    s->words[p->rank].part[turn] = *mine;
    s->final = p->buckets;
    shared_counter_post(&s->words[p->rank].final, s->first + (uint32_t)p->buckets);
    while (s->added < p->buckets) {
        if ((rc = wait_all(s, 0, s->added, s->first + (uint32_t)s->added + 1, e)) < 0)
            return rc;
        add_slice(s, s->added);
    }
    if ((rc = wait_all(s, 1, p->buckets - 1, s->first + (uint32_t)p->buckets, e)) < 0)
        return rc;
    for (int r = 0; r < p->ranks; r++)
        all[r] = s->words[r].part[turn];
    count_bytes(s);
    phase_clock_enter(p->clock, before);
    return OK;
}

static void shared_window_release(struct transport *t)
{
    struct shared_window *s = (struct shared_window *)t;

    shared_memory_close(&s->memory);
    free(s->base.vectors);
    free(s->all);
    free(s->slices);
    free(s->late);
    free(s);
}

static const struct transport_operations operations = {
    .name = "shared memory",
    .begin = shared_window_begin,
    .advance = shared_window_advance,
    .complete = shared_window_complete,
    .free = shared_window_release,
};

int shared_window_new(struct transport **out, const struct transport_plan *plan, struct error *e)
{
    struct shared_window *s = calloc(1, sizeof *s);
    const size_t vector = shared_memory_rounded(plan->total * sizeof(real));
    const size_t head = shared_memory_rounded((size_t)plan->ranks * sizeof(struct words));
    char *vectors;
    int *host = NULL; /* all zero: one host */
    int rc = OK;

    if (s) {
        s->base.operations = &operations;
        s->base.plan = *plan;
        s->base.step = -1;
        s->all = calloc((size_t)plan->reduction->count, sizeof *s->all);
        s->base.vectors = calloc((size_t)reduction_vectors(plan->reduction, plan->rank), sizeof *s->base.vectors);
        s->slices = calloc((size_t)plan->ranks, sizeof *s->slices);
        s->late = calloc((size_t)plan->ranks, 1);
        host = calloc((size_t)plan->ranks, sizeof *host);
    }
    if (!s || !s->all || !s->base.vectors || !s->slices || !s->late || !host)
        rc = error_memory(e, NULL, "for the shared window");
    if ((rc = world_agree(plan->world, "make room for shared memory", rc, e)) == OK)
        rc = shared_memory_open(&s->memory, plan->world, host, plan->ranks,
                                head + vector * ((size_t)plan->reduction->count + 1), e);
    free(host);
    if (rc < 0) {
        if (s)
            shared_window_release(&s->base);
        return rc;
    }
    s->words = s->memory.bytes;
    vectors = (char *)s->memory.bytes + head;
    for (int r = 0; r < plan->ranks; r++)
        s->slices[r] = slices_count(plan->total, plan->bucket, plan->ranks, r);
    for (int v = 0; v < plan->reduction->count; v++) {
        const int own = v - plan->reduction->first[plan->rank];
        real *at = (real *)(void *)(vectors + vector * (size_t)v);

        s->all[v] = at;
        if (own >= 0 && own < reduction_vectors(plan->reduction, plan->rank))
            s->base.vectors[own] = at;
    }
    s->result = (real *)(void *)(vectors + vector * (size_t)plan->reduction->count);
    s->base.result = s->result;
    *out = &s->base;
    return OK;
}
