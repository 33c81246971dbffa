/*
 * The ring over threads: each chunk added in its own order, to the bit, the same on all ranks; bytes exactly.
 */
#include "tests/check.h"
#include "tests/trainer/players.h"
#include "trainer/collective/transports/transport.h"

#include "base/random.h"

#include <string.h>

enum { STEPS = 4, TOTAL_MAX = 1500 };

struct scene {
    size_t total, bucket;
};

/* In a thread, where cmocka's own checks cannot return. */
static void must(int holds)
{
    if (!holds)
        abort();
}

static void fill(real *vector, size_t total, int64_t step, int rank)
{
    struct random r;

    random_init(&r, (uint64_t)rank, RANDOM_TEST, (uint64_t)step, 0);
    for (size_t i = 0; i < total; i++)
        vector[i] = (real)(random_uniform(&r) - 0.5);
}

/* Chunk c of every bucket: rank c first, then each next one. */
static void add_round(const struct scene *s, int64_t step, int ranks, real *sum)
{
    static _Thread_local real vectors[PLAYERS_MAX][TOTAL_MAX];

    for (int r = 0; r < ranks; r++)
        fill(vectors[r], s->total, step, r);
    for (size_t q = 0; q < bucket_count(s->total, s->bucket); q++)
        for (int c = 0; c < ranks; c++) {
            const struct extent x = slice_extent(bucket_extent(s->total, s->bucket, q), ranks, c);

            for (size_t i = x.from; i < x.to; i++) {
                sum[i] = vectors[c][i];
                for (int k = 1; k < ranks; k++)
                    sum[i] += vectors[(c + k) % ranks][i];
            }
        }
}

static void pass_round(struct player *p)
{
    const struct scene *s = p->scene;
    struct reduction reduction;
    const struct transport_plan plan = { .world = p->world,
                                         .total = s->total,
                                         .bucket = s->bucket,
                                         .buckets = bucket_count(s->total, s->bucket),
                                         .ranks = p->ranks,
                                         .rank = p->rank,
                                         .reduction = &reduction };
    struct tally_part parts[PLAYERS_MAX];
    struct transport *t;
    real wanted[TOTAL_MAX];

    must(reduction_init(&reduction, p->ranks, 0, NULL) == OK);
    must(ring_new(&t, &plan, NULL) == OK);
    for (int64_t step = 0; step < STEPS; step++) {
        const struct tally_part mine = { .hash = (uint64_t)(p->rank + 10 * step) };

        t->operations->begin(t, step);
        fill(t->vectors[0], s->total, step, p->rank);
        for (size_t low = s->total; low > 100; low -= 100) /* as backward would */
            t->operations->advance(t, buckets_ready(s->total, s->bucket, low));
        must(t->operations->complete(t, &mine, parts, NULL) == OK);
        for (int r = 0; r < p->ranks; r++)
            must(parts[r].hash == (uint64_t)(r + 10 * step));
        add_round(s, step, p->ranks, wanted);
        must(!memcmp(t->result, wanted, s->total * sizeof *wanted));
    }
    must(traffic_gather(&p->traffic, p->world, p->ranks, "count", NULL) == OK);
    t->operations->free(t);
    reduction_release(&reduction);
}

static size_t chunks(const struct scene *s, int ranks, int c)
{
    return slices_count(s->total, s->bucket, ranks, (c + ranks) % ranks);
}

/* All but the chunk that a rank completes, then all but the one that it gets last. */
static void check_bytes(const struct scene *s, const struct traffic *t)
{
    const int n = t->ranks;
    const int64_t tallies = STEPS * (n - 1) * (int64_t)sizeof(struct tally_part);
    int64_t all = 0;

    for (int r = 0; r < n; r++) {
        const struct traffic_link link = traffic_of_rank(t, r);
        const size_t out = 2 * s->total - chunks(s, n, r + 1) - chunks(s, n, r + 2);
        const size_t in = 2 * s->total - chunks(s, n, r) - chunks(s, n, r + 1);

        assert_int_equal(link.sent, STEPS * (int64_t)(out * sizeof(real)) + tallies);
        assert_int_equal(link.received, STEPS * (int64_t)(in * sizeof(real)) + tallies);
        if (s->total % (16 * (size_t)n) == 0 && s->bucket % (16 * (size_t)n) == 0)
            assert_int_equal(link.sent + link.received - 2 * tallies,
                             STEPS * 4 * (n - 1) * (int64_t)(s->total * sizeof(real)) / n);
        all += link.sent;
    }
    assert_int_equal(all, n * tallies + STEPS * 2 * (n - 1) * (int64_t)(s->total * sizeof(real)));
}

static void test_round(void **state)
{
    static const struct scene scenes[] = { { 960, 960 }, { 1500, 256 }, { 1001, 96 },
                                           { 960, 240 }, { 7, 16 },     { 17, 16 } };

    (void)state;
    for (int ranks = 1; ranks <= 5; ranks++)
        for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
            struct player players[PLAYERS_MAX];

            players_play(players, ranks, pass_round, &scenes[i]);
            if (ranks > 1)
                check_bytes(&scenes[i], &players[ranks - 1].traffic);
            players_leave(players, ranks);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
