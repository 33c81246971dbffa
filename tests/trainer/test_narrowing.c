/*
 * Gradients as bfloat16 on their way: packed and unpacked in place, and sums of each all-reduce by messages to the bit, the
 * same on all ranks, bytes exactly.
 */
#include "trainer/collective/narrowing.h"

#include "model/kernels/bfloat16.h"
#include "tests/trainer/sums.h"
#include "trainer/collective/places.h"

enum { LONGEST = 1200 };

static void in_its_place(void **state)
{
    static const size_t extents[][2] = { { 0, 0 },    { 0, 1 },      { 0, 300 },   { 16, 272 },   { 16, 273 },
                                         { 5, 1000 }, { 700, 1100 }, { 801, 900 }, { 0, LONGEST } };
    static const size_t rounded[] = { 0, 1, 255, 800, 801, 1099, LONGEST };
    real from[LONGEST], v[LONGEST], apart[LONGEST], round[LONGEST];

    (void)state;
    sums_fill(from, LONGEST, 0, 1);
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        for (size_t k = 0; k < sizeof rounded / sizeof *rounded; k++) {
            const struct extent x = { extents[i][0], extents[i][1] };
            size_t bytes = 0;

            for (size_t e = x.from; e < x.to; e++)
                bytes += e < rounded[k] ? 2 : 4;
            assert_int_equal(narrowing_bytes(x, rounded[k]), bytes);
            memcpy(v, from, sizeof v);
            memcpy(round, from, sizeof round);
            memset(apart, 0xee, sizeof apart);
            narrowing_pack(from, x, rounded[k], apart);
            narrowing_pack(v, x, rounded[k], v + x.from);
            assert_memory_equal(v + x.from, apart, bytes);
            assert_true(bytes == sizeof apart || ((unsigned char *)apart)[bytes] == 0xee);
            narrowing_unpack(v + x.from, x, rounded[k], v);
            narrowing_round(round, x, rounded[k]);
            assert_memory_equal(round, v, sizeof v);
            for (size_t e = 0; e < LONGEST; e++) {
                const int inside = e >= x.from && e < x.to && e < rounded[k];

                assert_true(v[e] == (inside ? bfloat16_wide(bfloat16_of(from[e])) : from[e]));
            }
        }
}

/* ---- all-reduces ------------------------------------------------------------------------------------------------- */

static real narrow(const struct sums *s, size_t i, real x)
{
    return i < s->rounded ? bfloat16_wide(bfloat16_of(x)) : x;
}

static int by_messages(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e)
{
    (void)s;
    return message_exchange_new(out, plan, e);
}

static void add_rounded(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum)
{
    for (size_t i = 0; i < s->total; i++) {
        sum[i] = narrow(s, i, vectors[0][i]);
        for (int v = 1; v < r->workers; v++)
            sum[i] += narrow(s, i, vectors[v][i]);
        sum[i] = narrow(s, i, sum[i]);
    }
}

static int round_the_ring(struct transport **out, const struct transport_plan *plan, const struct sums *s,
                          struct error *e)
{
    (void)s;
    return ring_new(out, plan, e);
}

/* Each partial sum is rounded on its way to the next rank. */
static void add_round(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum)
{
    for (size_t q = 0; q < bucket_count(s->total, s->bucket); q++)
        for (int c = 0; c < r->workers; c++) {
            const struct extent x = slice_extent(bucket_extent(s->total, s->bucket, q), r->workers, c);

            for (size_t i = x.from; i < x.to; i++) {
                sum[i] = narrow(s, i, vectors[c][i]);
                for (int k = 1; k < r->workers; k++)
                    sum[i] = narrow(s, i, sum[i] + vectors[(c + k) % r->workers][i]);
            }
        }
}

static int hosts_of(const struct sums *s, int *host)
{
    struct process places[PLAYERS_MAX];

    memset(places, 0, sizeof places);
    for (size_t r = 0; s->hosts[r]; r++)
        places[r].host[0] = s->hosts[r];
    return places_hosts(places, (int)strlen(s->hosts), host);
}

static int in_two_levels(struct transport **out, const struct transport_plan *plan, const struct sums *s,
                         struct error *e)
{
    int host[PLAYERS_MAX];

    hosts_of(s, host);
    return two_level_new(out, plan, host, e);
}

/* Within a host in float32, then the hosts' sums as ranks by messages. */
static void add_hosts(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum)
{
    int host[PLAYERS_MAX];
    const int hosts = hosts_of(s, host);

    for (size_t i = 0; i < s->total; i++) {
        for (int h = 0; h < hosts; h++) {
            real of_host = 0;

            for (int k = 0, first = 1; k < r->workers; k++)
                if (host[k] == h) {
                    of_host = first ? vectors[k][i] : of_host + vectors[k][i];
                    first = 0;
                }
            of_host = narrow(s, i, of_host);
            sum[i] = h ? sum[i] + of_host : of_host;
        }
        sum[i] = narrow(s, i, sum[i]);
    }
}

static void check_bytes(const struct sums *s, const struct traffic *t, int senders)
{
    const struct extent all = { 0, s->total };
    int64_t sent = 0;

    for (int r = 0; r < t->ranks; r++)
        sent += traffic_of_rank(t, r).sent;
    assert_int_equal(sent, SUMS_STEPS * (2 * (senders - 1) * (int64_t)narrowing_bytes(all, s->rounded) +
                                         senders * (senders - 1) * (int64_t)sizeof(struct tally_part)));
}

static void test_sums(void **state)
{
    static const size_t sizes[][3] = { { 960, 960, 959 }, { 1500, 256, 1400 }, { 1001, 96, 500 }, { 7, 16, 6 } };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int ring = 0; ring < 2; ring++)
            for (int ranks = 2; ranks <= 5; ranks++) {
                const struct sums s = { .total = sizes[i][0],
                                        .bucket = sizes[i][1],
                                        .rounded = sizes[i][2],
                                        .make = ring ? round_the_ring : by_messages,
                                        .add = ring ? add_round : add_rounded };
                struct player players[PLAYERS_MAX];

                players_play(players, ranks, sums_play, &s);
                check_bytes(&s, &players[0].traffic, ranks);
                players_leave(players, ranks);
            }
}

static void test_hosts(void **state)
{
    static const char *const hosts[] = { "aab", "aabb", "abc", "aabbb", "aabbcc" };
    static const size_t sizes[][3] = { { 768, 768, 767 }, { 1500, 256, 1400 }, { 1001, 96, 500 } };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const struct sums s = { sizes[k][0], sizes[k][1], 0, hosts[i], in_two_levels, add_hosts, sizes[k][2] };
            const int ranks = (int)strlen(hosts[i]);
            struct player players[PLAYERS_MAX];

            players_play(players, ranks, sums_play, &s);
            players_leave(players, ranks);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_its_place),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
