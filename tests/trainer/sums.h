/*
 * sums.h - for tests of the all-reduce over threads: every rank fills its vectors and lets a transport add them, as in
 * backward, a part at a time; the sums must be those wanted, to the bit, and every rank must hear of all others.
 */
#ifndef TESTS_TRAINER_SUMS_H
#define TESTS_TRAINER_SUMS_H

#include "base/random.h"
#include "tests/trainer/players.h"
#include "trainer/collective/transport.h"

#include <string.h>

enum { SUMS_STEPS = 4 };

struct sums {
    size_t total, bucket;
    int micro_shards;  /* of all ranks, which have a vector for each node of their part; 0: none */
    const char *hosts; /* "aabb": the host of each rank; NULL: for the maker to know */
    int (*make)(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e);
    /* The sum of all vectors (r->count); NULL: as reduction_sum() adds them. */
    void (*add)(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum);
    size_t rounded; /* elements that travel as bfloat16 */
};

/* In a thread, where cmocka's own checks cannot return. */
static inline void must(int holds)
{
    if (!holds)
        abort();
}

static inline void sums_fill(real *vector, size_t total, int64_t step, int which)
{
    struct random r;

    random_init(&r, (uint64_t)which, RANDOM_TEST, (uint64_t)step, 0);
    for (size_t i = 0; i < total; i++)
        vector[i] = (real)(random_uniform(&r) - 0.5);
}

static inline void sums_want(const struct sums *s, const struct reduction *r, int64_t step, real *sum)
{
    const real **vectors = calloc((size_t)r->count, sizeof *vectors);
    real *all = reals_new((size_t)r->count * s->total);

    must(vectors && all);
    for (int v = 0; v < r->count; v++) {
        sums_fill(all + (size_t)v * s->total, s->total, step, v);
        vectors[v] = all + (size_t)v * s->total;
    }
    if (s->add)
        s->add(s, r, vectors, sum);
    else
        reduction_sum(r, sum, vectors, 0, s->total);
    free(all);
    free(vectors);
}

/* A player's part; its scene is a struct sums. Ends by counting the bytes of all. */
static inline void sums_play(struct player *p)
{
    const struct sums *s = p->scene;
    struct reduction reduction;
    const struct transport_plan plan = { .world = p->world,
                                         .total = s->total,
                                         .bucket = s->bucket,
                                         .buckets = bucket_count(s->total, s->bucket),
                                         .ranks = p->ranks,
                                         .rank = p->rank,
                                         .reduction = &reduction,
                                         .rounded = s->rounded };
    real *wanted = reals_new(s->total);
    struct tally_part parts[PLAYERS_MAX];
    struct transport *t;

    must(wanted && reduction_init(&reduction, p->ranks, s->micro_shards, NULL) == OK);
    must(s->make(&t, &plan, s, NULL) == OK);
    for (int64_t step = 0; step < SUMS_STEPS; step++) {
        const struct tally_part mine = { .hash = (uint64_t)(p->rank + 10 * step) };

        t->operations->begin(t, step);
        for (int v = 0; v < reduction_vectors(&reduction, p->rank); v++)
            sums_fill(t->vectors[v], s->total, step, reduction.first[p->rank] + v);
        for (size_t low = s->total; low > 100; low -= 100) /* as backward would */
            t->operations->advance(t, buckets_ready(s->total, s->bucket, low));
        must(t->operations->complete(t, &mine, parts, NULL) == OK);
        for (int r = 0; r < p->ranks; r++)
            must(parts[r].hash == (uint64_t)(r + 10 * step));
        sums_want(s, &reduction, step, wanted);
        must(!memcmp(t->result, wanted, s->total * sizeof *wanted));
    }
    must(traffic_gather(&p->traffic, p->world, p->ranks, "count", NULL) == OK);
    t->operations->free(t);
    reduction_release(&reduction);
    free(wanted);
}

#endif
