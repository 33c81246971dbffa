/* The tree of squares against its definition, additions in double, and what clipping makes of gradients. */
#include "trainer/optimizers/gradient_norm.h"

#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static real *values_of(size_t n)
{
    real *v = calloc(n + 1, sizeof *v);
    struct random r;

    random_init(&r, 9, RANDOM_TEST, n, 0);
    for (size_t i = 0; i < n; i++)
        v[i] = (real)(random_normal(&r) * exp(8 * random_normal(&r))); /* sums in another order differ */
    return v;
}

static size_t half_of(size_t n)
{
    size_t left = 1;

    while (2 * left < n)
        left *= 2;
    return left;
}

/* The definition: the largest power of two below n on the left. */
static double tree(const real *v, size_t n)
{
    const size_t left = half_of(n);

    return n == 1 ? (double)v[0] * (double)v[0] : tree(v, left) + tree(v + left, n - left);
}

static double blocks(const double *sums, size_t n)
{
    const size_t left = half_of(n);

    return n == 1 ? sums[0] : blocks(sums, left) + blocks(sums + left, n - left);
}

static void test_definition(void **state)
{
    static const size_t sizes[] = { 1, 2, 3, 5, 6, 7, 100, 4095, 4096, 4097, 3 * 4096, 5 * 4096 + 77, 23 * 4096 + 1 };

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const size_t n = sizes[s], whole = (n + GRADIENT_NORM_BLOCK - 1) / GRADIENT_NORM_BLOCK;
        struct gradient_norm norm = { 0 };
        double sums[32];
        real *v = values_of(n);

        assert_true(whole <= 32);
        for (size_t b = 0; b < whole; b++) {
            const size_t from = b * GRADIENT_NORM_BLOCK, left = n - from;
            const size_t count = left < GRADIENT_NORM_BLOCK ? left : GRADIENT_NORM_BLOCK;

            sums[b] = tree(v + from, count);
            gradient_norm_add(&norm, v + from, count);
        }
        assert_true(gradient_norm_squares(&norm) == blocks(sums, whole));
        free(v);
    }
}

/* Whole blocks on a power of two are one tree: then the block's size does not matter. */
static void test_one_tree(void **state)
{
    const size_t n = 16 * GRADIENT_NORM_BLOCK;
    struct gradient_norm norm = { 0 };
    real *v = values_of(n);
    double forward = 0;

    (void)state;
    for (size_t i = 0; i < n; i += GRADIENT_NORM_BLOCK)
        gradient_norm_add(&norm, v + i, GRADIENT_NORM_BLOCK);
    assert_true(gradient_norm_squares(&norm) == tree(v, n));
    for (size_t i = 0; i < n; i++)
        forward += (double)v[i] * (double)v[i];
    assert_true(forward != gradient_norm_squares(&norm)); /* the test can tell orders apart */
    assert_true(fabs(forward / gradient_norm_squares(&norm) - 1) < 1e-12);
    free(v);
}

/* Adds a tree out of parts that end at `cuts` (cut of them, ascending), each with its own nodes. */
static double out_of_parts(const real *v, size_t n, const size_t *cuts, size_t cut)
{
    struct gradient_norm_tree t = { 0 };

    for (size_t i = 0, from = 0; i <= cut; i++) {
        struct gradient_norm_node nodes[GRADIENT_NORM_NODES];
        const size_t to = i < cut ? cuts[i] : n, count = gradient_norm_nodes(n, from, to, nodes);

        assert_true(count <= GRADIENT_NORM_NODES && count == gradient_norm_nodes(n, from, to, NULL));
        for (size_t k = 0; k < count; k++) {
            struct gradient_norm norm = { 0 };

            for (size_t at = nodes[k].from; at < nodes[k].to; at += GRADIENT_NORM_BLOCK)
                gradient_norm_add(&norm, v + at,
                                  nodes[k].to - at < GRADIENT_NORM_BLOCK ? nodes[k].to - at : GRADIENT_NORM_BLOCK);
            gradient_norm_join(&t, n, nodes[k], gradient_norm_squares(&norm));
        }
        from = to;
    }
    return gradient_norm_whole(&t);
}

static double at_once(const real *v, size_t n)
{
    struct gradient_norm norm = { 0 };

    for (size_t at = 0; at < n; at += GRADIENT_NORM_BLOCK)
        gradient_norm_add(&norm, v + at, n - at < GRADIENT_NORM_BLOCK ? n - at : GRADIENT_NORM_BLOCK);
    return gradient_norm_squares(&norm);
}

/* However the values are shared, the nodes of the parts give the bits of the whole. */
static void test_parts(void **state)
{
    static const size_t sizes[] = { 4096, 4097, 3 * 4096, 5 * 4096 + 77, 23 * 4096 + 1 };

    (void)state;
    for (size_t n = 1; n < 40; n++) {
        real *v = values_of(n);

        for (size_t a = 0; a <= n; a++)
            for (size_t b = a; b <= n; b++)
                assert_true(out_of_parts(v, n, (size_t[]){ a, b }, 2) == at_once(v, n));
        free(v);
    }
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint64_t draw = 0; draw < 20; draw++) {
            const size_t n = sizes[s];
            size_t cuts[30], cut = 0;
            struct random r;
            real *v = values_of(n);

            random_init(&r, 4, RANDOM_TEST, n, draw);
            while (cut < sizeof cuts / sizeof *cuts && (cut ? cuts[cut - 1] : 0) < n) {
                const size_t last = cut ? cuts[cut - 1] : 0;

                cuts[cut++] = last + random_below(&r, 1 + (n - last) / (1 + random_below(&r, 8)));
            }
            assert_true(out_of_parts(v, n, cuts, cut) == at_once(v, n));
            free(v);
        }
}

/* Few doubles: a part of n values has at most 2 log2(n) nodes, the whole one. */
static void test_few_nodes(void **state)
{
    const size_t n = 10000000;

    (void)state;
    assert_int_equal(gradient_norm_nodes(n, 0, n, NULL), 1);
    assert_int_equal(gradient_norm_nodes(n, 0, 1 << 20, NULL), 1);
    assert_int_equal(gradient_norm_nodes(n, n / 3, n / 3, NULL), 0);
    assert_true(gradient_norm_nodes(n, 1, n - 1, NULL) <= 48);
}

static void test_zeros(void **state)
{
    struct gradient_norm a = { 0 }, b = { 0 };
    const real zeros[GRADIENT_NORM_BLOCK] = { 0 }, one = 3;

    (void)state;
    gradient_norm_add(&a, zeros, GRADIENT_NORM_BLOCK);
    gradient_norm_add_zeros(&b);
    gradient_norm_add(&a, &one, 1);
    gradient_norm_add(&b, &one, 1);
    assert_true(gradient_norm_squares(&a) == 9 && gradient_norm_squares(&b) == 9 && a.blocks == b.blocks);
}

static void test_none(void **state)
{
    struct gradient_norm norm = { 0 };

    (void)state;
    assert_true(gradient_norm_squares(&norm) == 0);
    gradient_norm_add(&norm, NULL, 0);
    assert_true(gradient_norm_squares(&norm) == 0);
}

static void test_factor(void **state)
{
    (void)state;
    assert_true(gradient_norm_factor(0, 5) == 1);
    assert_true(gradient_norm_factor(4.9, 5) == 1);
    assert_true(gradient_norm_factor(5, 5) == 1);
    assert_true(gradient_norm_factor(20, 5) == 0.25);
    assert_true(gradient_norm_factor(INFINITY, 5) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition), cmocka_unit_test(test_one_tree), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_few_nodes),  cmocka_unit_test(test_zeros),    cmocka_unit_test(test_none),
        cmocka_unit_test(test_factor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
