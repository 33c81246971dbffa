/*
 * The ring over threads: each chunk added in its own order, to the bit, the same on all ranks; bytes exactly.
 */
#include "tests/trainer/sums.h"

static int make(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e)
{
    (void)s;
    return ring_new(out, plan, e);
}

/* Chunk c of every bucket: rank c first, then each next one. */
static void add_round(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum)
{
    const int ranks = r->workers;

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

static size_t chunks(const struct sums *s, int ranks, int c)
{
    return slices_count(s->total, s->bucket, ranks, (c + ranks) % ranks);
}

/* All but the chunk that a rank completes, then all but the one that it gets last. */
static void check_bytes(const struct sums *s, const struct traffic *t)
{
    const int n = t->ranks;
    const int64_t tallies = SUMS_STEPS * (n - 1) * (int64_t)sizeof(struct tally_part);
    int64_t all = 0;

    for (int r = 0; r < n; r++) {
        const struct traffic_link link = traffic_of_rank(t, r);
        const size_t out = 2 * s->total - chunks(s, n, r + 1) - chunks(s, n, r + 2);
        const size_t in = 2 * s->total - chunks(s, n, r) - chunks(s, n, r + 1);

        assert_int_equal(link.sent, SUMS_STEPS * (int64_t)(out * sizeof(real)) + tallies);
        assert_int_equal(link.received, SUMS_STEPS * (int64_t)(in * sizeof(real)) + tallies);
        if (s->total % (16 * (size_t)n) == 0 && s->bucket % (16 * (size_t)n) == 0)
            assert_int_equal(link.sent + link.received - 2 * tallies,
                             SUMS_STEPS * 4 * (n - 1) * (int64_t)(s->total * sizeof(real)) / n);
        all += link.sent;
    }
    assert_int_equal(all, n * tallies + SUMS_STEPS * 2 * (n - 1) * (int64_t)(s->total * sizeof(real)));
}

static void test_round(void **state)
{
    static const size_t sizes[][2] = { { 960, 960 }, { 1500, 256 }, { 1001, 96 }, { 960, 240 }, { 7, 16 }, { 17, 16 } };

    (void)state;
    for (int ranks = 1; ranks <= 5; ranks++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const struct sums s = { .total = sizes[i][0], .bucket = sizes[i][1], .make = make, .add = add_round };
            struct player players[PLAYERS_MAX];

            players_play(players, ranks, sums_play, &s);
            if (ranks > 1)
                check_bytes(&s, &players[ranks - 1].traffic);
            players_leave(players, ranks);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
