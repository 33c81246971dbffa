/* The histogram of staleness: ranges without gaps, counts that add up. */
#include "trainer/server/staleness.h"

#include "tests/check.h"

static void test_ranges(void **state)
{
    static const int64_t begins[] = { 0, 1, 15, 16, 24, 32, 48, 64 };
    static const size_t places[] = { 0, 1, 15, 16, 17, 18, 19, 20 };
    int64_t from, to, next = 0;

    (void)state;
    for (size_t i = 0; i < STALENESS_RANGES; i++) {
        staleness_range(i, &from, &to);
        assert_int_equal(from, next);
        assert_true(to >= from);
        next = to == INT64_MAX ? -1 : to + 1;
    }
    assert_int_equal(next, -1);
    assert_int_equal(from, 49152);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        staleness_range(places[i], &from, &to);
        assert_int_equal(from, begins[i]);
    }
}

static void test_counts(void **state)
{
    static const int64_t values[] = { 0, 0, 3, 15, 16, 23, 24, 49151, 49152, 1000000000000 };
    const size_t count = sizeof values / sizeof *values;
    struct staleness s = { 0 };
    double sum = 0;
    int64_t all = 0;

    (void)state;
    assert_true(staleness_mean(&s) == 0);
    for (size_t k = 0; k < count; k++) {
        const struct staleness before = s;
        int changed = 0;

        staleness_add(&s, values[k]);
        sum += (double)values[k];
        for (size_t i = 0; i < STALENESS_RANGES; i++) {
            int64_t from, to;

            staleness_range(i, &from, &to);
            assert_int_equal(s.counts[i] - before.counts[i], values[k] >= from && values[k] <= to);
            changed += s.counts[i] != before.counts[i];
        }
        assert_int_equal(changed, 1);
        assert_int_equal(s.max, values[k]); /* they ascend */
    }
    staleness_add(&s, 2);
    assert_int_equal(s.max, values[count - 1]);
    for (size_t i = 0; i < STALENESS_RANGES; i++)
        all += s.counts[i];
    assert_int_equal(all, count + 1);
    assert_int_equal(s.pushes, count + 1);
    assert_true(staleness_mean(&s) == (sum + 2) / (double)(count + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_ranges), cmocka_unit_test(test_counts) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
