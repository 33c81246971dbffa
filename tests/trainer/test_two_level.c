/*
 * The all-reduce in two levels over threads that count as ranks on several hosts: sums of the hosts' sums to the bit,
 * with the tree those of one host; bytes between hosts as if each host were one rank, exactly.
 */
#include "tests/check.h"
#include "tests/trainer/players.h"
#include "trainer/collective/places.h"
#include "trainer/collective/transports/lanes.h"
#include "trainer/collective/transports/transport.h"

#include "base/random.h"

#include <string.h>

enum { STEPS = 4, TOTAL_MAX = 1500, VECTORS_MAX = 16 };

struct scene {
    const char *hosts; /* "aabb": the host of each rank */
    size_t total, bucket;
    int micro_shards; /* of all ranks; 0: none */
};

static int hosts_of(const char *hosts, int *host)
{
    struct process places[PLAYERS_MAX];

    memset(places, 0, sizeof places);
    for (size_t r = 0; hosts[r]; r++)
        places[r].host[0] = hosts[r];
    return places_hosts(places, (int)strlen(hosts), host);
}

static void fill(real *vector, size_t total, int64_t step, int rank)
{
    struct random r;

    random_init(&r, (uint64_t)rank, RANDOM_TEST, (uint64_t)step, 0);
    for (size_t i = 0; i < total; i++)
        vector[i] = (real)(random_uniform(&r) - 0.5);
}

/* What the sums must be: with micro-shards those of one host; else of each host's ranks, then of the hosts. */
static void add_in_two(const struct scene *s, const struct reduction *r, int64_t step, real *sum)
{
    static _Thread_local real vectors[VECTORS_MAX][TOTAL_MAX], sums[PLAYERS_MAX][TOTAL_MAX];
    const real *parts[VECTORS_MAX], *of_hosts[PLAYERS_MAX];
    int host[PLAYERS_MAX], hosts = hosts_of(s->hosts, host);

    for (int v = 0; v < r->count; v++) {
        fill(vectors[v], s->total, step, v);
        parts[v] = vectors[v];
    }
    if (s->micro_shards) {
        reduction_sum(r, sum, parts, 0, s->total);
        return;
    }
    for (int h = 0; h < hosts; h++) {
        int members = 0;

        for (int k = 0; k < r->workers; k++)
            if (host[k] == h)
                parts[members++] = vectors[k];
        exchange_sum(sums[h], parts, members, 0, s->total);
        of_hosts[h] = sums[h];
    }
    exchange_sum(sum, of_hosts, hosts, 0, s->total);
}

/* In a thread, where cmocka's own checks cannot return. */
static void must(int holds)
{
    if (!holds)
        abort();
}

static void exchange(struct player *p)
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
    int host[PLAYERS_MAX];

    hosts_of(s->hosts, host);
    must(reduction_init(&reduction, p->ranks, s->micro_shards, NULL) == OK);
    must(two_level_new(&t, &plan, host, NULL) == OK);
    for (int64_t step = 0; step < STEPS; step++) {
        const struct tally_part mine = { .hash = (uint64_t)(p->rank + 10 * step) };

        t->operations->begin(t, step);
        for (int v = 0; v < reduction_vectors(&reduction, p->rank); v++)
            fill(t->vectors[v], s->total, step, reduction.first[p->rank] + v);
        for (size_t low = s->total; low > 100; low -= 100) /* as backward would */
            t->operations->advance(t, buckets_ready(s->total, s->bucket, low));
        must(t->operations->complete(t, &mine, parts, NULL) == OK);
        for (int r = 0; r < p->ranks; r++)
            must(parts[r].hash == (uint64_t)(r + 10 * step));
        add_in_two(s, &reduction, step, wanted);
        must(!memcmp(t->result, wanted, s->total * sizeof *wanted));
    }
    must(traffic_gather(&p->traffic, p->world, p->ranks, "count", NULL) == OK);
    t->operations->free(t);
    reduction_release(&reduction);
}

/* Each host sends and gets 2 (M - 1) / M of the vector, and every rank's tally goes to every other host once. */
static void check_bytes(const struct scene *s, struct traffic *t)
{
    int64_t all = 0;

    t->hosts = hosts_of(s->hosts, t->host);
    for (int h = 0; h < t->hosts; h++) {
        const struct traffic_link link = traffic_of_host(t, h);
        const int64_t vector = STEPS * 2 * (t->hosts - 1) * (int64_t)(s->total * sizeof(real)) / t->hosts;
        int64_t out = 0, in = 0;

        for (int r = 0; r < t->ranks; r++) {
            out += STEPS * (int64_t)sizeof(struct tally_part) * (t->host[r] == h ? t->hosts - 1 : 0);
            in += STEPS * (int64_t)sizeof(struct tally_part) * (t->host[r] != h);
        }
        if (s->total % 768 == 0 && s->bucket % 768 == 0) { /* as many cache lines for each lane and host */
            assert_int_equal(link.sent, vector + out);
            assert_int_equal(link.received, vector + in);
        }
        all += link.sent - out;
    }
    assert_int_equal(all, STEPS * 2 * (t->hosts - 1) * (int64_t)(s->total * sizeof(real)));
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
            const struct scene s = { hosts[i], sizes[k / 4][0], sizes[k / 4][1], micro_shards[k % 4] };
            struct player players[PLAYERS_MAX];
            const int ranks = (int)strlen(s.hosts);

            if (!keeps(s.hosts, s.micro_shards))
                continue;
            players_play(players, ranks, exchange, &s);
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
