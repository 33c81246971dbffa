/* histogram_limits.h: every value goes to the bucket that a search over the limits finds. */
#include "eventlog/write/kinds/histogram_limits.h"

#include "tests/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The first limit above x, by halving; DBL_MAX belongs to the last bucket. */
static size_t searched(const double *limits, double x)
{
    size_t low = 0, high = HISTOGRAM_LIMITS - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (limits[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void same(double x)
{
    const struct histogram_limits *l = histogram_limits();
    size_t want = searched(l->limits, x), got = histogram_limits_bucket(l, x);

    if (got != want)
        fail_msg("%a is in bucket %zu, not %zu", x, want, got);
}

/* TensorFlow's own, from default_histogram_buckets of tensorflow/core/lib/histogram/histogram.cc. */
static void limits_are_tensorflows(void **state)
{
    const double *limits = histogram_limits()->limits;
    double p = 1e-12;

    (void)state;
    assert_true(limits[0] == -DBL_MAX && limits[HISTOGRAM_LIMITS - 1] == DBL_MAX);
    assert_true(limits[HISTOGRAM_POSITIVE + 1] == 0 && limits[HISTOGRAM_POSITIVE + 2] == 1e-12);
    assert_true(limits[HISTOGRAM_LIMITS - 2] == 9.920775621859783e+19);
    for (int i = 0; i < HISTOGRAM_POSITIVE; i++, p *= 1.1) {
        assert_true(limits[HISTOGRAM_POSITIVE + 2 + i] == p);
        assert_true(limits[HISTOGRAM_POSITIVE - i] == -p);
    }
}

/* With TEST_ALL_FLOATS in the environment, all 2^32 of them. */
static void floats(void **state)
{
    const uint64_t stride = getenv("TEST_ALL_FLOATS") ? 1 : 251;
    uint64_t count = 0;

    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride) {
        float x = bits_float((uint32_t)bits);

        if (!isfinite(x))
            continue;
        same((double)x);
        count++;
    }
    printf("%llu floats\n", (unsigned long long)count);
}

static void around_every_limit(void **state)
{
    const double *limits = histogram_limits()->limits;

    (void)state;
    for (size_t i = 0; i < HISTOGRAM_LIMITS; i++) {
        float nearest = (float)limits[i];

        same(limits[i]);
        if (i)
            same(nextafter(limits[i], -INFINITY));
        if (i + 1 < HISTOGRAM_LIMITS)
            same(nextafter(limits[i], INFINITY));
        if (isfinite(nearest)) {
            same((double)nearest);
            same((double)nextafterf(nearest, -INFINITY));
            same((double)nextafterf(nearest, INFINITY));
        }
    }
}

/* Both ends of each stretch of doubles that the table knows, and some between. */
static void doubles(void **state)
{
    static const uint64_t lower[] = { 0, 1, 0x5a5a5a5a5a5a, 0x800000000000, 0xfffffffffffe, 0xffffffffffff };

    (void)state;
    for (uint64_t upper = 0; upper < 1 << 16; upper++)
        for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
            double x = bits_double(upper << 48 | lower[i]);

            if (isfinite(x))
                same(x);
        }
    same(DBL_MIN / 3);
    same(-DBL_TRUE_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_tensorflows),
        cmocka_unit_test(floats),
        cmocka_unit_test(around_every_limit),
        cmocka_unit_test(doubles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
