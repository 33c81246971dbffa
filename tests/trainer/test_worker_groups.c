/* Which workers push together, and that adding by host keeps the order of the tree. */
#include "trainer/server/worker_groups.h"

#include "base/random.h"
#include "tests/check.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/lanes.h"

static void test_alone(void **state)
{
    struct worker_groups g;
    struct reduction r;

    (void)state;
    assert_int_equal(reduction_init(&r, 3, 8, NULL), OK);
    assert_int_equal(worker_groups_init(&g, &r, NULL, NULL), OK);
    assert_int_equal(g.count, 3);
    assert_int_equal(g.together, 0);
    for (int w = 0; w < 3; w++) {
        assert_int_equal(g.first[w], w);
        assert_int_equal(g.size[w], 1);
        assert_int_equal(worker_groups_next(&g, w), -1);
        assert_int_equal(reduction_vectors(&g.reduction, w), reduction_vectors(&r, w));
    }
    worker_groups_release(&g);
    reduction_release(&r);
}

/* Of hosts whose ranks take turns, too. */
static void test_by_host(void **state)
{
    static const int host[] = { 0, 1, 0, 1, 2 };
    struct worker_groups g;
    struct reduction r;

    (void)state;
    assert_int_equal(reduction_init(&r, 5, 0, NULL), OK);
    assert_int_equal(worker_groups_init(&g, &r, host, NULL), OK);
    assert_int_equal(g.count, 3);
    assert_int_equal(g.first[1], 1);
    assert_int_equal(g.size[1], 2);
    assert_int_equal(worker_groups_next(&g, 0), 2);
    assert_int_equal(worker_groups_next(&g, 2), -1);
    assert_int_equal(g.first[2], 4);
    assert_int_equal(g.reduction.count, 3);
    assert_int_equal(reduction_most_vectors(&g.reduction), 1);
    worker_groups_release(&g);
    reduction_release(&r);
}

/* The sums of hosts, added, have the bits of the workers' vectors, added, in the tree. */
static void test_tree(void **state)
{
    enum { SHARDS = 8, WORKERS = 6 };
    static const int host[WORKERS] = { 0, 0, 0, 1, 1, 1 };
    real vectors[SHARDS][1], sums[2][1], whole, by_host;
    const real *parts[SHARDS], *of_hosts[2] = { sums[0], sums[1] };
    struct worker_groups g;
    struct reduction r;
    struct random random;

    (void)state;
    random_init(&random, 3, RANDOM_TEST, 0, 0);
    assert_int_equal(reduction_init(&r, WORKERS, SHARDS, NULL), OK);
    assert_true(lanes_keep_order(host, &r) && r.count <= SHARDS);
    assert_int_equal(worker_groups_init(&g, &r, host, NULL), OK);
    assert_true(g.together && g.reduction.nodes[1].first == 4 && g.reduction.nodes[1].count == 4);
    for (int round = 0; round < 200; round++) {
        for (int v = 0; v < r.count; v++) {
            vectors[v][0] = (real)random_normal(&random);
            parts[v] = vectors[v];
        }
        reduction_sum(&r, &whole, parts, 0, 1);
        for (int k = 0; k < 2; k++)
            reduction_tree_sum(sums[k], parts + r.first[g.first[k]], r.nodes + r.first[g.first[k]],
                               r.first[g.first[k] + g.size[k]] - r.first[g.first[k]], 0, 1);
        reduction_sum(&g.reduction, &by_host, of_hosts, 0, 1);
        assert_memory_equal(&by_host, &whole, sizeof whole);
    }
    worker_groups_release(&g);
    reduction_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_alone), cmocka_unit_test(test_by_host),
                                        cmocka_unit_test(test_tree) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
