/* The fixed tree: how many vectors each worker hands on, and one sum, bit for bit, for every partition of the leaves. */
#include "trainer/collective/reduction_tree.h"

#include "base/random.h"
#include "tests/check.h"

#include <string.h>

enum { LEAVES_MAX = 64, N = 1333 /* more than two blocks */ };

/* strategies, 9.2: vectors of the rank that has most, and of all ranks together. */
static const struct {
    int leaves, workers, most, all;
} table[] = {
    { 8, 2, 1, 2 },    { 8, 3, 2, 5 },   { 8, 4, 1, 4 },   { 8, 5, 2, 6 },   { 8, 6, 1, 6 },
    { 8, 7, 1, 7 },    { 8, 8, 1, 8 },   { 16, 2, 1, 2 },  { 16, 3, 3, 7 },  { 16, 4, 1, 4 },
    { 16, 5, 2, 9 },   { 16, 6, 2, 10 }, { 16, 7, 2, 11 }, { 16, 8, 1, 8 },  { 16, 12, 1, 12 },
    { 16, 16, 1, 16 }, { 64, 2, 1, 2 },  { 64, 3, 5, 0 },  { 64, 4, 1, 4 },  { 64, 5, 5, 0 },
    { 64, 6, 4, 0 },   { 64, 7, 4, 0 },  { 64, 8, 1, 8 },  { 64, 12, 3, 0 }, { 64, 16, 1, 16 },
};

static void vectors_of_a_rank(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const int leaves = table[i].leaves, n = table[i].workers;
        int most = 0, all = 0;

        for (int r = 0; r < n; r++) {
            const int count = reduction_tree_nodes(leaves, reduction_tree_first(leaves, n, r),
                                                   reduction_tree_first(leaves, n, r + 1), NULL);

            most = count > most ? count : most;
            all += count;
        }
        assert_int_equal(most, table[i].most);
        if (table[i].all)
            assert_int_equal(all, table[i].all);
    }
}

/* 1: [first, first + count) is a node of the tree below [from, to). */
static int is_node(int from, int to, struct tree_node node)
{
    int left = 1;

    if (node.first == from && node.first + node.count == to)
        return 1;
    if (to - from < 2)
        return 0;
    while (2 * left < to - from)
        left *= 2;
    return is_node(from, from + left, node) || is_node(from + left, to, node);
}

/* Nodes of the tree that follow each other, of which no two neighbours are a node together; nor are all their leaves
 * in fewer nodes. */
static void nodes_are_whole_and_largest(void **state)
{
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];

    (void)state;
    for (int leaves = 1; leaves <= LEAVES_MAX; leaves++)
        for (int from = 0; from <= leaves; from++)
            for (int to = from; to <= leaves; to++) {
                const int count = reduction_tree_nodes(leaves, from, to, nodes);
                int at = from;

                assert_int_equal(reduction_tree_nodes(leaves, from, to, NULL), count);
                for (int k = 0; k < count; k++) {
                    assert_int_equal(nodes[k].first, at);
                    assert_true(nodes[k].count >= 1 && is_node(0, leaves, nodes[k]));
                    at += nodes[k].count;
                    for (int j = 0; j < k; j++)
                        assert_false(is_node(0, leaves, (struct tree_node){ nodes[j].first, at - nodes[j].first }));
                }
                assert_int_equal(at, to);
            }
    assert_true(reduction_tree_nodes(1 << 30, 1, (1 << 30) - 1, NULL) <= REDUCTION_TREE_NODES_MAX);
    assert_true(reduction_tree_nodes((1 << 30) - 1, 1, (1 << 30) - 2, NULL) <= REDUCTION_TREE_NODES_MAX);
}

static void workers_have_all_leaves(void **state)
{
    (void)state;
    for (int leaves = 1; leaves <= LEAVES_MAX; leaves++)
        for (int n = 1; n <= leaves; n++) {
            assert_int_equal(reduction_tree_first(leaves, n, 0), 0);
            assert_int_equal(reduction_tree_first(leaves, n, n), leaves);
            for (int r = 0; r < n; r++) {
                const int count = reduction_tree_first(leaves, n, r + 1) - reduction_tree_first(leaves, n, r);

                assert_true(count == leaves / n || count == (leaves + n - 1) / n);
            }
        }
    assert_int_equal(reduction_tree_first(1 << 20, 1 << 20, (1 << 20) - 1),
                     (1 << 20) - 1); /* more than an int between */
}

static real leaves_made[LEAVES_MAX][N], made[LEAVES_MAX][N], whole[N], sum[N];

/* The node of leaves [first, first + count), element i, as the header says. */
static real by_hand(int first, int count, size_t i)
{
    int left = 1;

    if (count == 1)
        return leaves_made[first][i];
    while (2 * left < count)
        left *= 2;
    return by_hand(first, left, i) + by_hand(first + left, count - left, i);
}

static void make_leaves(void)
{
    struct random r;

    random_init(&r, 4, RANDOM_TEST, 0, 0);
    for (int k = 0; k < LEAVES_MAX; k++)
        for (size_t i = 0; i < N; i++)
            leaves_made[k][i] = (real)(random_normal(&r) * (i % 3 ? 1 : 1e4));
}

/* Cuts the leaves before those marked in `cuts`, adds each part to its nodes, and all of these to the root. */
static void check_partition(int leaves, const char *cuts)
{
    struct tree_node nodes[LEAVES_MAX];
    const real *parts[LEAVES_MAX];
    int count = 0;

    for (int from = 0, to; from < leaves; from = to) {
        for (to = from + 1; to < leaves && !cuts[to]; to++)
            ;
        count += reduction_tree_nodes(leaves, from, to, nodes + count);
    }
    for (int k = 0; k < count; k++) {
        for (size_t i = 0; i < N; i++)
            made[k][i] = by_hand(nodes[k].first, nodes[k].count, i);
        parts[k] = made[k];
    }
    for (size_t from = 0, piece = 1 + (size_t)leaves * 11; from < N; from += piece)
        reduction_tree_sum(sum, parts, nodes, count, from, from + piece < N ? from + piece : N);
    assert_memory_equal(sum, whole, sizeof whole);
    reduction_tree_sum(made[0], parts, nodes, count, 0, N);
    assert_memory_equal(made[0], whole, sizeof whole);
}

static void sum_is_one(void **state)
{
    static const int sizes[] = { 1, 2, 3, 5, 6, 7, 8, 12, 16, 23, 64 };
    struct random r;

    (void)state;
    make_leaves();
    random_init(&r, 5, RANDOM_TEST, 0, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int leaves = sizes[s];
        char cuts[LEAVES_MAX];

        for (size_t i = 0; i < N; i++)
            whole[i] = by_hand(0, leaves, i);
        for (int n = 1; n <= leaves; n++) {
            memset(cuts, 0, sizeof cuts);
            for (int w = 1; w < n; w++)
                cuts[reduction_tree_first(leaves, n, w)] = 1;
            check_partition(leaves, cuts);
        }
        for (int again = 0; again < 20; again++) {
            for (int k = 0; k < leaves; k++)
                cuts[k] = (char)random_below(&r, 2);
            check_partition(leaves, cuts);
        }
    }
}

/* Several workers of one host hand on what their leaves are together: the nodes of the host's part. */
static void nodes_of_nodes(void **state)
{
    enum { LEAVES = 23, HOSTS = 3, WORKERS = 9 };
    static real of_hosts[LEAVES][N];
    struct tree_node host_nodes[LEAVES], nodes[LEAVES];
    const real *host_parts[LEAVES], *parts[LEAVES];
    int host_count = 0, count;

    (void)state;
    make_leaves();
    for (size_t i = 0; i < N; i++)
        whole[i] = by_hand(0, LEAVES, i);
    for (int h = 0; h < HOSTS; h++) {
        const int first = h * WORKERS / HOSTS, last = (h + 1) * WORKERS / HOSTS;
        int at = 0, wanted;

        count = 0;
        for (int w = first; w < last; w++)
            count += reduction_tree_nodes(LEAVES, reduction_tree_first(LEAVES, WORKERS, w),
                                          reduction_tree_first(LEAVES, WORKERS, w + 1), nodes + count);
        for (int k = 0; k < count; k++) {
            for (size_t i = 0; i < N; i++)
                made[k][i] = by_hand(nodes[k].first, nodes[k].count, i);
            parts[k] = made[k];
        }
        wanted = reduction_tree_nodes(LEAVES, reduction_tree_first(LEAVES, WORKERS, first),
                                      reduction_tree_first(LEAVES, WORKERS, last), host_nodes + host_count);
        for (int k = 0; k < wanted; k++, host_count++) {
            const int begin = at, end = host_nodes[host_count].first + host_nodes[host_count].count;

            while (at < count && nodes[at].first < end)
                at++;
            reduction_tree_sum(of_hosts[host_count], parts + begin, nodes + begin, at - begin, 0, N);
            host_parts[host_count] = of_hosts[host_count];
        }
        assert_int_equal(at, count);
    }
    reduction_tree_sum(sum, host_parts, host_nodes, host_count, 0, N);
    assert_memory_equal(sum, whole, sizeof whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_a_rank),       cmocka_unit_test(nodes_are_whole_and_largest),
        cmocka_unit_test(workers_have_all_leaves), cmocka_unit_test(sum_is_one),
        cmocka_unit_test(nodes_of_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
