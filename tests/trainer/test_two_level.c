/*
 * The all-reduce in two levels over threads that count as ranks on several hosts: sums of the hosts' sums to the bit,
 * with the tree those of one host; bytes between hosts as if each host were one rank, exactly.
 */
#include "tests/trainer/sums.h"
#include "trainer/collective/lanes.h"
#include "trainer/collective/places.h"

static int hosts_of(const char *hosts, int *host)
{
    struct process places[PLAYERS_MAX];

    memset(places, 0, sizeof places);
    for (size_t r = 0; hosts[r]; r++)
        places[r].host[0] = hosts[r];
    return places_hosts(places, (int)strlen(hosts), host);
}

static int make(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e)
{
    int host[PLAYERS_MAX];

    hosts_of(s->hosts, host);
    return two_level_new(out, plan, host, e);
}

/* With micro-shards the sums of one host; else of each host's ranks, then of the hosts. */
static void add_in_two(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum)
{
    real *sums = reals_new(PLAYERS_MAX * s->total);
    const real *members[PLAYERS_MAX], *of_hosts[PLAYERS_MAX];
    int host[PLAYERS_MAX], hosts = hosts_of(s->hosts, host);

    must(sums != NULL);
    if (s->micro_shards)
        reduction_sum(r, sum, vectors, 0, s->total);
    for (int h = 0; h < hosts && !s->micro_shards; h++) {
        int count = 0;

        for (int k = 0; k < r->workers; k++)
            if (host[k] == h)
                members[count++] = vectors[k];
        exchange_sum(sums + (size_t)h * s->total, members, count, 0, s->total);
        of_hosts[h] = sums + (size_t)h * s->total;
    }
    if (!s->micro_shards)
        exchange_sum(sum, of_hosts, hosts, 0, s->total);
    free(sums);
}

/* Each host sends and gets 2 (M - 1) / M of the vector, and every rank's tally goes to every other host once. */
static void check_bytes(const struct sums *s, struct traffic *t)
{
    int64_t all = 0;

    t->hosts = hosts_of(s->hosts, t->host);
    for (int h = 0; h < t->hosts; h++) {
        const struct traffic_link link = traffic_of_host(t, h);
        const int64_t vector = SUMS_STEPS * 2 * (t->hosts - 1) * (int64_t)(s->total * sizeof(real)) / t->hosts;
        int64_t out = 0, in = 0;

        for (int r = 0; r < t->ranks; r++) {
            out += SUMS_STEPS * (int64_t)sizeof(struct tally_part) * (t->host[r] == h ? t->hosts - 1 : 0);
            in += SUMS_STEPS * (int64_t)sizeof(struct tally_part) * (t->host[r] != h);
        }
        if (s->total % 768 == 0 && s->bucket % 768 == 0) { /* as many cache lines for each lane and host */
            assert_int_equal(link.sent, vector + out);
            assert_int_equal(link.received, vector + in);
        }
        all += link.sent - out;
    }
    assert_int_equal(all, SUMS_STEPS * 2 * (t->hosts - 1) * (int64_t)(s->total * sizeof(real)));
}

static int keeps(const char *hosts, int micro_shards)
{
    struct reduction reduction;
    int host[PLAYERS_MAX], result;

    hosts_of(hosts, host);
    assert_int_equal(reduction_init(&reduction, (int)strlen(hosts), micro_shards, NULL), OK);
    result = lanes_keep_order(host, &reduction);
    reduction_release(&reduction);
    return result;
}

static void test_sums(void **state)
{
    static const char *const hosts[] = { "aabb",     "ab",   "aab", "abab",    "aabbb",    "abc",  "aabbcc", "abbcccaa",
                                         "aaaabbcc", "aaaa", "a",   "abbbbbb", "aabbccdd", "aaab", "aaabb",  "aaabbb" };
    static const size_t sizes[][2] = { { 768, 768 }, { 1500, 256 }, { 1001, 96 }, { 7, 16 } };
    static const int micro_shards[] = { 0, 8, 12, 16 };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        for (size_t k = 0; k < 16; k++) {
            const struct sums s = {
                sizes[k / 4][0], sizes[k / 4][1], micro_shards[k % 4], hosts[i], make, add_in_two, 0
            };
            struct player players[PLAYERS_MAX];
            const int ranks = (int)strlen(s.hosts);

            if (!keeps(s.hosts, s.micro_shards))
                continue;
            players_play(players, ranks, sums_play, &s);
            check_bytes(&s, &players[ranks - 1].traffic);
            players_leave(players, ranks);
        }
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static void test_lanes(void **state)
{
    static const int host[] = { 0, 1, 0, 1, 1 };
    struct lanes l;

    (void)state;
    for (int r = 0; r < 5; r++) {
        static const int lane[] = { 0, 0, 1, 1, -1 }, local[] = { 0, 0, 1, 1, 2 };

        assert_int_equal(lanes_init(&l, host, 5, r, NULL), OK);
        assert_int_equal(l.count, 2);
        assert_int_equal(l.hosts, 2);
        assert_int_equal(l.lane, lane[r]);
        assert_int_equal(l.local, local[r]);
        assert_int_equal(l.host, host[r]);
        assert_int_equal(l.group, host[r] ? 3 : 2);
        assert_int_equal(l.members[l.local], r);
        if (l.lane >= 0) {
            assert_int_equal(l.carriers[0], l.lane ? 2 : 0);
            assert_int_equal(l.carriers[1], l.lane ? 3 : 1);
        }
        lanes_release(&l);
    }
}

static void test_keep_order(void **state)
{
    static const char *const whole[] = { "a", "aaa", "ab", "aabb", "aaaabbbb", "aabbccdd", "abcdefgh", "aaabbb" };
    static const char *const cut[] = { "aab", "aba", "abab", "abba", "aaab", "aaaaabbb", "aabbaacc", "abbbbbb" };

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        assert_int_equal(keeps(whole[i], 8), 1);
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        assert_int_equal(keeps(cut[i], 8), 0);
        assert_int_equal(keeps(cut[i], 0), 1); /* there is no tree to keep */
    }
    assert_int_equal(keeps("aab", 12), 1); /* 8 and 4 of them */
    assert_int_equal(keeps("aaaabbcc", 8), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_keep_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
