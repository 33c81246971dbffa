/* batch_source.h: each element once, different by seed, worker and epoch, and without a preferred place. */
#include "dataset/batch_source.h"

#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static void test_exact(void **state)
{
    static const size_t counts[] = { 1, 2, 3, 10, 255, 256, 257, 10000 };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int64_t epoch = 0; epoch < 5; epoch++) {
            uint32_t *order = malloc(counts[i] * sizeof *order);
            char *seen = calloc(counts[i], 1);

            assert_true(order && seen);
            permutation_fill(order, counts[i], 1234567890123 + (uint64_t)epoch, 0, epoch);
            for (size_t k = 0; k < counts[i]; k++) {
                assert_true(order[k] < counts[i]);
                assert_int_equal(seen[order[k]]++, 0);
            }
            free(seen);
            free(order);
        }
    }
}

static void test_pure_and_different(void **state)
{
    static const struct {
        uint64_t seed;
        uint32_t worker;
        int64_t epoch;
    } draws[] = {
        { 1, 0, 0 }, { 2, 0, 0 }, { 1, 1, 0 }, { 1, 0, 1 }, { 1, 1, 1 }, { 1, 0, 1LL << 33 }, { 1ULL << 40, 0, 0 },
    };
    enum { DRAWS = sizeof draws / sizeof *draws, COUNT = 100 };
    uint32_t order[DRAWS][COUNT], again[COUNT];

    (void)state;
    for (size_t i = 0; i < DRAWS; i++) {
        permutation_fill(order[i], COUNT, draws[i].seed, draws[i].worker, draws[i].epoch);
        permutation_fill(again, COUNT, draws[i].seed, draws[i].worker, draws[i].epoch);
        assert_memory_equal(order[i], again, sizeof again);
        for (size_t j = 0; j < i; j++)
            assert_true(memcmp(order[i], order[j], sizeof again) != 0);
    }
}

/* Element e at place p in 1/8 of the permutations: chi-square over the 64 cells, 49 degrees of freedom. */
static void test_even(void **state)
{
    enum { COUNT = 8, TRIALS = 8000 };
    int cell[COUNT][COUNT] = { { 0 } };
    double chi_square = 0, expected = (double)TRIALS / (double)COUNT;
    uint32_t order[COUNT];

    (void)state;
    for (int t = 0; t < TRIALS; t++) {
        permutation_fill(order, COUNT, 42, 0, t);
        for (int p = 0; p < COUNT; p++)
            cell[p][order[p]]++;
    }
    for (int p = 0; p < COUNT; p++)
        for (int k = 0; k < COUNT; k++)
            chi_square += (cell[p][k] - expected) * (cell[p][k] - expected) / expected;
    assert_true(chi_square > 20 && chi_square < 95); /* 0.0001 and 0.9999 quantiles are 19.3 and 94.6 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_pure_and_different),
        cmocka_unit_test(test_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
