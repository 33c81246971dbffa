/* The tree of squares against its definition, additions in double, and what clipping makes of gradients. */
#include "trainer/update/gradient_norm.h"

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
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_one_tree),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_factor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
