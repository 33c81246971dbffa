/* Groups of runs: which runs belong together, and their mean with its band. */
#include "eventlog/tool/picture/curve_group.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void test_names(void **state)
{
    static const struct {
        const char *options[3], *run, *want;
        size_t option;
    } cases[] = {
        { { "mpi/*=all-reduce" }, "mpi/seed-1", "all-reduce", 1 },
        { { "mpi/*=all-reduce" }, "ps/seed-1", "", 0 },
        { { "a=b*=x=y", "*=rest" }, "a=b1", "rest", 2 }, /* the last '=' ends the pattern: it is "a=b*=x" */
        { { "seed-*" }, "mpi/seed-12", "mpi/seed-*", 1 },
        { { "seed-*" }, "seed-12/train", "seed-*/train", 1 },
        { { "seed?" }, "mpi/resnet-lr0.1-seed3/train", "mpi/resnet-lr0.1-seed?/train", 1 },
        { { "seed-[0-9]" }, "seed-1-lr0.1", "", 0 }, /* not the end of the part */
        { { "nothing", "s*" }, "mpi/seed", "mpi/s*", 2 },
        { { "*" }, "mpi/seed", "*/seed", 1 },
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct option_list options = { .count = 0 };
        struct buffer name = BUFFER_EMPTY;

        for (; cases[i].options[options.count]; options.count++)
            options.items[options.count] = cases[i].options[options.count];
        assert_int_equal(curve_group_check(&options, NULL), OK);
        assert_int_equal(curve_group_name(&options, cases[i].run, &name), cases[i].option);
        assert_string_equal(buffer_text(&name), cases[i].want);
        buffer_release(&name);
    }
}

static void test_wrong_options(void **state)
{
    static const char *const wrong[] = { "", "=", "=name", "glob=" };
    (void)state;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct option_list options = { .items = { wrong[i] }, .count = 1 };

        assert_int_equal(curve_group_check(&options, NULL), ERR_ARG);
    }
}

static void assert_means(const struct curve_means *m, const double (*want)[4], size_t count)
{
    assert_int_equal(m->count, count);
    for (size_t i = 0; i < count; i++) {
        const double got[4] = { m->mean[i].x, m->mean[i].y, m->low[i].y, m->high[i].y };

        assert_true(m->low[i].x == got[0] && m->high[i].x == got[0]);
        for (int k = 0; k < 4; k++)
            assert_true(isnan(want[i][k]) ? isnan(got[k]) : fabs(got[k] - want[i][k]) < 1e-12);
    }
}

static void test_means(void **state)
{
    static const struct picture_point a[] = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, NAN }, { 8, 1 } };
    static const struct picture_point b[] = { { 2, 5 }, { 3, 6 }, { 4, 1 }, { 4, 9 }, { 10, 3 } };
    /* At 3 the first is between its points, from 6 on it is no number, behind 8 the second is alone. */
    static const double range[][4] = {
        { 0, 1, 1, 1 },       { 2, 4, 3, 5 }, { 3, 5, 4, 6 },  { 4, 7, 5, 9 },
        { 6, NAN, NAN, NAN }, { 8, 3, 1, 5 }, { 10, 3, 3, 3 },
    };
    const double root = sqrt(2);
    const double deviation[][4] = {
        { 0, 1, 1, 1 },
        { 2, 4, 4 - root, 4 + root },
        { 3, 5, 5 - root, 5 + root },
        { 4, 7, 7 - 2 * root, 7 + 2 * root },
        { 6, NAN, NAN, NAN },
        { 8, 3, 3 - 2 * root, 3 + 2 * root },
        { 10, 3, 3, 3 },
    };
    const struct picture_curve curves[] = { { .points = a, .count = COUNT(a) }, { .points = b, .count = COUNT(b) } };
    struct picture_point mean[10], low[10], high[10];
    struct curve_means m = { mean, low, high, 0 };
    (void)state;

    assert_int_equal(curve_group_means(curves, 2, CURVE_BAND_RANGE, &m, NULL), OK);
    assert_means(&m, range, COUNT(range));
    m.count = 0;
    assert_int_equal(curve_group_means(curves, 2, CURVE_BAND_DEVIATION, &m, NULL), OK);
    assert_means(&m, deviation, COUNT(deviation));
    m.count = 0;
    assert_int_equal(curve_group_means(curves, 0, CURVE_BAND_RANGE, &m, NULL), OK);
    assert_int_equal(m.count, 0);
}

static void test_sort(void **state)
{
    struct picture_point points[] = { { 3, 0 }, { 1, 1 }, { 2, 2 } };
    (void)state;

    curve_group_sort(points, COUNT(points));
    for (size_t i = 0; i < COUNT(points); i++)
        assert_true(points[i].x == (double)i + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_sort),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
