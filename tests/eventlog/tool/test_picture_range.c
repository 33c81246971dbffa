/* What the axis of values spans: all values, unless a few dwarf the rest. */
#include "eventlog/tool/picture/picture_range.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { MOST = 2000 };

struct drawing {
    struct picture picture;
    struct picture_panel panel;
    struct picture_curve curves[2];
    struct picture_point points[2][MOST];
};

/* A picture of curves that are added with add(). */
static struct drawing *drawing(int better)
{
    struct drawing *d = calloc(1, sizeof *d);

    assert_non_null(d);
    d->picture = (struct picture){ .low = NAN, .high = NAN };
    d->panel = (struct picture_panel){ .curves = d->curves, .better = better };
    for (int i = 0; i < 2; i++)
        d->curves[i] = (struct picture_curve){ .run = (size_t)i, .points = d->points[i] };
    return d;
}

static void add(struct drawing *d, size_t curve, double y)
{
    size_t n = d->curves[curve].count++;

    d->points[curve][n] = (struct picture_point){ (double)n, y };
    d->panel.count = curve + 1 > d->panel.count ? curve + 1 : d->panel.count;
}

static struct picture_range range(struct drawing *d, enum picture_clip clip)
{
    d->picture.clip = clip;
    return picture_range_of(&d->picture, &d->panel, 0, 0);
}

static void test_untrained_step_0(void **state)
{
    static const double precision[] = { 0.1, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.99 };
    struct drawing *d = drawing(1);
    struct buffer notes = BUFFER_EMPTY;
    struct picture_range r;
    (void)state;

    for (size_t curve = 0; curve < 2; curve++)
        for (size_t i = 0; i < COUNT(precision); i++)
            add(d, curve, precision[i]);
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == 0.95 && r.y1 == 0.99 && r.below == 2 && !r.above && r.lowest == 0.1);
    assert_true(r.marks == (1u << PICTURE_LINE | 1u << PICTURE_BELOW));
    picture_range_notes(&d->picture, &r, &notes);
    assert_string_equal(buffer_text(&notes), "2 points below, down to 0.1");
    r = range(d, PICTURE_CLIP_OFF);
    assert_true(r.y0 == 0.1 && r.y1 == 0.99 && !r.below);
    buffer_release(&notes);
    free(d);
}

/* Nobody asked for the start of a usual curve to be hidden; TensorBoard's rule takes a twentieth off each end. */
static void test_usual_curve_is_whole(void **state)
{
    struct drawing *d = drawing(-1);
    struct picture_range r;
    (void)state;

    for (int i = 0; i < 101; i++)
        add(d, 0, exp(-i / 20.0));
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == exp(-5) && r.y1 == 1 && !r.above && !r.below);
    r = range(d, PICTURE_CLIP_ON);
    assert_true(r.y0 == exp(-5) && r.y1 == exp(-0.25) && r.above == 5); /* the best value stays */
    free(d);
}

static void test_divergence(void **state)
{
    struct drawing *d = drawing(-1);
    struct picture_range r;
    (void)state;

    for (int i = 0; i < 100; i++)
        add(d, 0, 1 + exp(-i / 20.0));
    for (int i = 0; i < 80; i++)
        add(d, 1, 1.2 + exp(-i / 20.0));
    for (int i = 0; i < 20; i++) /* a fifth of its points */
        add(d, 1, i < 15 ? pow(10, 2 + i) : i % 2 ? INFINITY : NAN);
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y1 == 2.2 && r.above == 15 && r.highest == 1e16 && r.x1 == 99);
    assert_true(r.marks == (1u << PICTURE_LINE | 1u << PICTURE_ABOVE | 1u << PICTURE_NAN | 1u << PICTURE_PLUS));
    free(d);
}

/* A spike on the worse side is outside, or on either where neither is better; the best value never is. */
static void test_spikes_and_best(void **state)
{
    static const struct {
        int better;
        double low, high, y0, y1;
    } cases[] = {
        { 0, -1e6, 1e6, 0, 9 },   { -1, 0, 1e6, 0, 9 },  { 1, -1e6, 9, 0, 9 },
        { -1, -1e6, 9, -1e6, 9 }, { 1, 0, 1e6, 0, 1e6 },
    };
    (void)state;

    for (size_t k = 0; k < COUNT(cases); k++) {
        struct drawing *d = drawing(cases[k].better);
        struct picture_range r;

        for (int i = 0; i < MOST; i++)
            add(d, 0, i == 700 ? cases[k].high : i == 900 ? cases[k].low : i % 10);
        r = range(d, PICTURE_CLIP_AUTO);
        assert_true(r.y0 == cases[k].y0 && r.y1 == cases[k].y1);
        assert_true(r.below == (cases[k].low < r.y0) && r.above == (cases[k].high > r.y1));
        free(d);
    }
}

static void test_flat_curve_with_a_step(void **state)
{
    struct drawing *d = drawing(0);
    struct picture_range r;
    (void)state;

    for (int i = 0; i < 100; i++)
        add(d, 0, i < 98 ? 0.1 : 0.01); /* a learning rate: nothing is won by hiding its end */
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == 0.01 && r.y1 == 0.1);
    free(d);
}

static void test_asked_for(void **state)
{
    struct drawing *d = drawing(-1);
    struct buffer notes = BUFFER_EMPTY;
    struct picture_range r;
    (void)state;

    for (int i = -1; i < 10; i++)
        add(d, 0, i);
    d->picture.high = 5;
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == -1 && r.y1 == 5 && r.above == 4 && r.highest == 9);
    d->picture.low = 4.5;
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == 4.5 && r.y1 == 5 && r.below == 6 && r.lowest == -1);
    d->picture.low = 100;
    d->picture.high = NAN;
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == 100 && r.y1 > 100 && r.below == 11);
    d->picture.low = 0.5;
    d->picture.log_y = 1;
    r = range(d, PICTURE_CLIP_AUTO);
    assert_true(r.y0 == log10(0.5) && r.y1 == log10(9) && r.gaps == 2);
    picture_range_notes(&d->picture, &r, &notes);
    assert_string_equal(buffer_text(&notes), "2 points not above 0");
    buffer_release(&notes);
    free(d);
}

static void test_nothing_to_place(void **state)
{
    struct drawing *d = drawing(-1);
    struct picture_range r = range(d, PICTURE_CLIP_AUTO);
    (void)state;

    assert_true(r.x0 < r.x1 && r.y0 < r.y1);
    add(d, 0, NAN);
    r = range(d, PICTURE_CLIP_ON);
    assert_true(r.x0 < 0 && r.x1 > 0 && r.y0 < r.y1 && r.marks == 1u << PICTURE_NAN);
    add(d, 0, 3);
    r = range(d, PICTURE_CLIP_ON);
    assert_true(r.y0 < 3 && r.y1 > 3);
    free(d);
}

static void test_parse(void **state)
{
    static const struct {
        const char *text;
        int good;
        double low, high;
    } cases[] = {
        { "0,1", 1, 0, 1 },      { "-2.5,1e3", 1, -2.5, 1000 },
        { "0.5,", 1, 0.5, NAN }, { ",10", 1, NAN, 10 },
        { ",", 0, 0, 0 },        { "", 0, 0, 0 },
        { "1", 0, 0, 0 },        { "1,1", 0, 0, 0 },
        { "2,1", 0, 0, 0 },      { "a,b", 0, 0, 0 },
        { "0,nan", 0, 0, 0 },    { "0,inf", 0, 0, 0 },
        { "0,1,2", 0, 0, 0 },    { "0, 1", 0, 0, 0 },
    };
    double low, high;
    (void)state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(picture_range_parse(cases[i].text, &low, &high), cases[i].good);
        if (cases[i].good) {
            assert_true(low == cases[i].low || (isnan(low) && isnan(cases[i].low)));
            assert_true(high == cases[i].high || (isnan(high) && isnan(cases[i].high)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untrained_step_0),
        cmocka_unit_test(test_usual_curve_is_whole),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_spikes_and_best),
        cmocka_unit_test(test_flat_curve_with_a_step),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_nothing_to_place),
        cmocka_unit_test(test_parse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
