/* The pure parts of a picture: ticks and what stands at them, marks of what a line cannot show, clipping, labels that do
 * not overlap, last and best values. */
#include "eventlog/tool/picture/picture.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void assert_ticks(const struct picture_ticks *ticks, const char *want)
{
    char text[600] = "";

    for (size_t i = 0; i < ticks->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", ticks->text[i]);
    assert_string_equal(text, want);
}

static void test_value_ticks(void **state)
{
    const struct {
        double y0, y1;
        int log_y;
        const char *want;
    } cases[] = {
        { 0, 1, 0, "0.0 0.2 0.4 0.6 0.8 1.0" },
        { -0.3, 0.3, 0, "-0.3 -0.2 -0.1 0.0 0.1 0.2 0.3" },
        { 0.987651, 0.987659, 0, "0.987652 0.987654 0.987656 0.987658" }, /* no two alike */
        { 0, 2300000, 0, "0 5e+05 1e+06 1.5e+06 2e+06" },
        { 1.0e-7, 4.0e-7, 0, "1e-07 1.5e-07 2e-07 2.5e-07 3e-07 3.5e-07 4e-07" },
        { -3, 3, 1, "0.001 0.01 0.1 1 10 100 1000" },
        { -0.1, 1.1, 1, "1 2 5 10" },
        { log10(0.5), log10(0.6), 1, "0.50 0.52 0.54 0.56 0.58 0.60" },
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct picture p = { .log_y = cases[i].log_y };
        struct picture_ticks ticks;

        picture_value_ticks(&p, cases[i].y0, cases[i].y1, 7, &ticks);
        assert_ticks(&ticks, cases[i].want);
        for (size_t k = 0; k < ticks.count; k++)
            assert_true(ticks.at[k] >= cases[i].y0 - 1e-9 && ticks.at[k] <= cases[i].y1 + 1e-9);
    }
}

static void test_axis_ticks(void **state)
{
    static const struct {
        enum picture_axis axis;
        double x0, x1;
        const char *want;
    } cases[] = {
        { PICTURE_STEP, 0, 1000000, "0 200k 400k 600k 800k 1M" },
        { PICTURE_STEP, 100000, 100010, "100000 100002 100004 100006 100008 100010" },
        { PICTURE_STEP, 4.5, 5.5, "5" },
        { PICTURE_RELATIVE, 0, 7200, "0 min 30 min 60 min 90 min 120 min" },
        { PICTURE_WALL, 1.7e9, 1.7e9 + 7200, "22:30 23:00 23:30 00:00" },
    };
    char name[80];
    struct picture_ticks ticks;
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        picture_axis_ticks(cases[i].axis, cases[i].x0, cases[i].x1, 5, &ticks);
        assert_ticks(&ticks, cases[i].want);
    }
    picture_axis_name(PICTURE_WALL, 1.7e9, 1.7e9 + 7200, name, sizeof name);
    assert_string_equal(name, "time (UTC), 14 Nov 2023 to 15 Nov 2023");
    picture_point_text(PICTURE_STEP, 928434, 0, 1e6, name, sizeof name);
    assert_string_equal(name, "928434");
}

static void test_marks_of_what_a_line_cannot_show(void **state)
{
    static const struct picture_point points[] = {
        { 0, NAN }, { 1, 4 },        { 2, 100 },       { 3, NAN }, { 4, -1 },
        { 5, NAN }, { 6, INFINITY }, { 7, -INFINITY }, { 8, 5 },   { INFINITY, 5 },
    };
    static const struct {
        enum picture_mark mark;
        double y;
    } want[] = {
        { PICTURE_NAN, 4 }, { PICTURE_LINE, 4 },  { PICTURE_ABOVE, 100 }, { PICTURE_NAN, 10 }, { PICTURE_BELOW, -1 },
        { PICTURE_NAN, 0 }, { PICTURE_PLUS, 10 }, { PICTURE_MINUS, 0 },   { PICTURE_LINE, 5 }, { PICTURE_GAP, 5 },
    };
    const struct picture p = { .log_y = 0 }, logarithmic = { .log_y = 1 };
    const struct picture_curve c = { .points = points, .count = COUNT(points) };
    struct picture_walk walk = picture_walk_begin(&p, &c, 0, 0, 10);
    struct picture_point q;
    enum picture_mark mark;
    (void)state;

    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(picture_walk_next(&walk, &q, &mark), 1);
        assert_int_equal(mark, want[i].mark);
        assert_true(q.y == want[i].y);
    }
    assert_int_equal(picture_walk_next(&walk, &q, &mark), 0);
    walk = picture_walk_begin(&logarithmic, &c, 0, 0, 3);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(picture_walk_next(&walk, &q, &mark), 1);
    assert_int_equal(mark, PICTURE_GAP); /* -1 has no logarithm */
}

static void test_clip(void **state)
{
    static const struct {
        struct picture_point a, b, from, to;
        int drawn;
    } cases[] = {
        { { 0, 1 }, { 1, 9 }, { 0, 1 }, { 1, 9 }, 1 },     { { 0, 5 }, { 1, 15 }, { 0, 5 }, { 0.5, 10 }, 1 },
        { { 0, -10 }, { 3, 20 }, { 1, 0 }, { 2, 10 }, 1 }, { { 0, 20 }, { 4, 0 }, { 2, 10 }, { 4, 0 }, 1 },
        { { 0, 11 }, { 1, 12 }, { 0, 0 }, { 0, 0 }, 0 },   { { 0, -1 }, { 1, -1e300 }, { 0, 0 }, { 0, 0 }, 0 },
    };
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct picture_point a = cases[i].a, b = cases[i].b;

        assert_int_equal(picture_clip(0, 10, &a, &b), cases[i].drawn);
        if (!cases[i].drawn)
            continue;
        assert_true(fabs(a.x - cases[i].from.x) < 1e-12 && a.y == cases[i].from.y);
        assert_true(fabs(b.x - cases[i].to.x) < 1e-12 && b.y == cases[i].to.y);
    }
}

static void test_spread(void **state)
{
    double places[] = { 0, 0, 1, 50, 99, 100, 100 };
    static const double want[] = { 0, 10, 20, 50, 80, 90, 100 };
    (void)state;

    picture_spread(places, COUNT(places), 10, 0, 100);
    for (size_t i = 0; i < COUNT(places); i++)
        assert_true(places[i] == want[i]);
}

static void test_summary(void **state)
{
    static const struct picture_point points[] = { { 0, 3 }, { 1, -INFINITY }, { 2, 1 }, { 3, 2 }, { 4, NAN } };
    const struct picture_curve c = { .points = points, .count = COUNT(points) };
    (void)state;

    assert_ptr_equal(picture_summary_of(&c, -1).best, &points[2]); /* infinity is no best value */
    assert_ptr_equal(picture_summary_of(&c, 1).best, &points[0]);
    assert_null(picture_summary_of(&c, 0).best);
    assert_ptr_equal(picture_summary_of(&c, -1).last, &points[4]); /* the last is the last */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_ticks),
        cmocka_unit_test(test_axis_ticks),
        cmocka_unit_test(test_marks_of_what_a_line_cannot_show),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_summary),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
