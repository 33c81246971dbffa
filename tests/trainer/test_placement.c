/* Placing variables on servers, and packing a server's part into packets. */
#include "trainer/server/placement.h"

#include "base/random.h"
#include "model/kernels/bfloat16.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

enum { VARIABLES_MAX = 40 };

static size_t layout(const size_t *sizes, size_t count, struct extent *out)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        out[i] = (struct extent){ at, at + sizes[i] };
        at += sizes[i];
    }
    return at;
}

static void test_table(void **state)
{
    static const struct {
        const char *name;
        size_t sizes[VARIABLES_MAX];
        int servers;
        struct placed want[8];
    } cases[] = {
        { "one server has all, as one piece", { 5, 3, 9 }, 1, { { { 0, 17 }, 0 } } },
        { "largest first, to the least loaded", { 4, 6, 5, 5 }, 2, { { { 0, 10 }, 0 }, { { 10, 20 }, 1 } } },
        { "the order of sizes, not of the vector",
          { 1, 7, 2, 4 },
          2,
          { { { 0, 1 }, 1 }, { { 1, 8 }, 0 }, { { 8, 14 }, 1 } } },
        { "ties: the first in the vector, the lowest server",
          { 2, 2, 2 },
          3,
          { { { 0, 2 }, 0 }, { { 2, 4 }, 1 }, { { 4, 6 }, 2 } } },
        { "a variable larger than total / servers is cut", { 9, 1 }, 2, { { { 0, 5 }, 0 }, { { 5, 10 }, 1 } } },
        { "more servers than elements", { 1, 1 }, 3, { { { 0, 1 }, 0 }, { { 1, 2 }, 1 } } },
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct extent extents[VARIABLES_MAX];
        struct placement p;
        size_t n = 0, want = 0;

        while (n < VARIABLES_MAX && cases[c].sizes[n])
            n++;
        while (want < 8 && cases[c].want[want].extent.to)
            want++;
        layout(cases[c].sizes, n, extents);
        assert_int_equal(placement_make(&p, extents, n, cases[c].servers, NULL), OK);
        if (p.count != want)
            fail_msg("%s: %zu items, not %zu", cases[c].name, p.count, want);
        for (size_t i = 0; i < want; i++)
            if (memcmp(&p.items[i].extent, &cases[c].want[i].extent, sizeof(struct extent)) ||
                p.items[i].server != cases[c].want[i].server)
                fail_msg("%s: item %zu is [%zu, %zu) on %d", cases[c].name, i, p.items[i].extent.from,
                         p.items[i].extent.to, p.items[i].server);
        placement_release(&p);
    }
}

/* The variables of lenet: no server has 3 % more than its share, and each has parts of the largest variable. */
static void test_shares(void **state)
{
    static const size_t sizes[] = { 250, 10, 5000, 20, 16000, 50, 500, 10 };
    struct extent extents[8];

    (void)state;
    layout(sizes, 8, extents);
    for (int servers = 2; servers <= 8; servers++) {
        const size_t share = 21840 / (size_t)servers;
        struct placement p;
        int has[8] = { 0 };

        assert_int_equal(placement_make(&p, extents, 8, servers, NULL), OK);
        for (size_t i = 0; i < p.count; i++)
            has[p.items[i].server] |= p.items[i].extent.from < extents[4].to && p.items[i].extent.to > extents[4].from;
        for (int j = 0; j < servers; j++) {
            assert_in_range(p.held[j], 0, share + share * 3 / 100);
            assert_true(has[j]);
        }
        placement_release(&p);
    }
}

/* A packet on its way, with elements below `rounded` as bfloat16: as each would be by itself. */
static void check_narrow(const struct packing *p, size_t k, const real *vector, size_t rounded)
{
    const struct packet *packet = &p->packets[k];
    real *packed = calloc(packet->length + 1, sizeof *packed), *at = packed;
    size_t bytes = 0;

    assert_non_null(packed);
    packing_gather(p, k, vector, packed);
    packing_narrow(p, k, rounded, packed);
    packing_widen(p, k, rounded, packed);
    for (size_t i = 0; i < packet->pieces; i++) {
        const struct extent x = p->pieces[packet->first_piece + i];

        for (size_t j = x.from; j < x.to; j++, at++) {
            assert_true(*at == (j < rounded ? bfloat16_wide(bfloat16_of(vector[j])) : vector[j]));
            bytes += j < rounded ? 2 : 4;
        }
    }
    assert_int_equal(packing_bytes(p, k, rounded), bytes);
    free(packed);
}

/* total: elements, what is shared included. */
static void check_packing(const struct placement *p, size_t total, size_t limit, int *holders)
{
    const size_t shared = p->shared.to - p->shared.from;
    real *vector = calloc(total + 1, sizeof *vector), *back = calloc(total + 1, sizeof *back);
    real *packed = calloc(total + 1, sizeof *packed);

    for (size_t i = 0; i < total; i++)
        vector[i] = (real)(i + 1);
    for (int s = 0; s < p->servers; s++) {
        struct packing k;
        size_t sum = 0;

        assert_int_equal(packing_make(&k, p, s, limit, NULL), OK);
        assert_int_equal(k.length, p->held[s] + shared);
        for (size_t q = 0; q < k.packet_count; q++) {
            size_t low = (size_t)-1;

            assert_true(k.packets[q].length > 0 && k.packets[q].length <= limit);
            assert_true(k.packets[q].at == sum);
            sum += k.packets[q].length;
            for (size_t i = 0; i < k.packets[q].pieces; i++) {
                struct extent x = k.pieces[k.packets[q].first_piece + i];

                low = x.from < low ? x.from : low;
                for (size_t j = x.from; j < x.to; j++)
                    holders[j]++;
            }
            assert_true(low == k.packets[q].low); /* backward may send it as soon as it has come down to here */
            assert_true(q == 0 || low < k.packets[q - 1].low);
            for (size_t rounded = 0; rounded <= total; rounded += total / 3 + 1)
                check_narrow(&k, q, vector, rounded);
            packing_gather(&k, q, vector, packed);
            if (q == 0 && shared > 0)
                assert_true(packed[packing_shared_at(&k)] == (real)total);
            for (size_t i = 0, at = 0; i < k.packets[q].pieces; i++)
                for (size_t j = k.pieces[k.packets[q].first_piece + i].from;
                     j < k.pieces[k.packets[q].first_piece + i].to; j++)
                    back[j] = packed[at++];
        }
        assert_true(sum == k.length);
        packing_release(&k);
    }
    assert_memory_equal(vector, back, total * sizeof *vector);
    free(vector);
    free(back);
    free(packed);
}

/* Whatever the sizes: every element on one server, in one packet; no server above total / servers and a part. */
static void test_any(void **state)
{
    struct random r;

    (void)state;
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (int round = 0; round < 300; round++) {
        size_t sizes[VARIABLES_MAX], n = 1 + random_below(&r, VARIABLES_MAX - 1), total, limit;
        struct extent extents[VARIABLES_MAX];
        int servers = 1 + (int)random_below(&r, 6), *holders;
        struct placement p;

        for (size_t i = 0; i < n; i++)
            sizes[i] = random_below(&r, i % 5 == 0 ? 700 : 12);
        total = layout(sizes, n, extents);
        limit = 1 + random_below(&r, 300) % (round % 3 ? 300 : 3);
        holders = calloc(total + 1, sizeof *holders);
        assert_int_equal(placement_make(&p, extents, n, servers, NULL), OK);
        for (int s = 0; s < servers; s++)
            assert_true(p.held[s] <= 2 * (total / (size_t)servers + 1));
        p.shared = (struct extent){ total, total + (size_t)(round % 2) }; /* on every server, where there is one */
        check_packing(&p, p.shared.to, limit, holders);
        for (size_t i = 0; i < p.shared.to; i++)
            assert_int_equal(holders[i], i < total ? 1 : servers);
        free(holders);
        placement_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_shares),
                                        cmocka_unit_test(test_any) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
