/* Which points stay: counts, first and last, peaks, and gaps. */
#include "eventlog/rewrite/downsample.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1000 };

static size_t kept(const uint8_t *keep, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        assert_in_range(keep[i], 0, 1);
        count += keep[i];
    }
    return count;
}

static void test_counts(void **state)
{
    double x[POINTS], y[POINTS];
    uint8_t keep[POINTS + 1];

    (void)state;
    for (size_t i = 0; i < POINTS; i++) {
        x[i] = (double)i;
        y[i] = sin((double)i / 20) + (double)(i * 7919 % 101) / 1000;
    }
    for (size_t n = 0; n <= POINTS; n += n < 12 ? 1 : 97) {
        for (size_t most = 2; most <= n + 2; most += most < 12 ? 1 : 61) {
            keep[n] = 77;
            downsample_even(n, most, keep);
            assert_int_equal(kept(keep, n), n < most ? n : most);
            assert_true(!n || (keep[0] && keep[n - 1]));
            downsample_curve(x, y, n, most, keep);
            assert_int_equal(kept(keep, n), n < most ? n : most);
            assert_true(!n || (keep[0] && keep[n - 1]));
            assert_int_equal(keep[n], 77);
        }
        for (size_t k = 1; k < 20; k++) {
            downsample_every(n, k, keep);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(keep[i], i % k == 0 || i == n - 1);
        }
    }
}

static void test_peaks_stay(void **state)
{
    double x[POINTS], y[POINTS];
    uint8_t keep[POINTS];

    (void)state;
    for (size_t i = 0; i < POINTS; i++) {
        x[i] = (double)i;
        y[i] = i == 123 ? 50 : i == 777 ? -50 : 0.001 * (double)(i % 7);
    }
    downsample_curve(x, y, POINTS, 20, keep);
    assert_int_equal(keep[123] + keep[777], 2);
}

static void test_what_is_not_finite(void **state)
{
    double x[POINTS], y[POINTS];
    uint8_t keep[POINTS];

    (void)state;
    for (size_t i = 0; i < POINTS; i++) {
        x[i] = (double)i;
        y[i] = i < 500 ? NAN : i == 800 ? INFINITY : i == 801 ? 9 : 1;
    }
    downsample_curve(x, y, POINTS, 50, keep);
    assert_int_equal(kept(keep, POINTS), 50);
    assert_int_equal(keep[801], 1);
    for (size_t i = 0; i < POINTS; i++)
        y[i] = NAN;
    downsample_curve(x, y, POINTS, 50, keep);
    assert_int_equal(kept(keep, POINTS), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_peaks_stay),
        cmocka_unit_test(test_what_is_not_finite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
