/* Lines and bands as paths: what of a curve is drawn, and where it is cut. */
#include "eventlog/tool/picture/picture_svg.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>

/* A unit of the picture for one of each axis, so that a point (x, y) is at x, 100 - y. */
static const struct picture_svg_plot plot = { 0, 0, 100, 100, { .x0 = 0, .x1 = 100, .y0 = 0, .y1 = 100 }, 1, 1 };

static void check_path(struct buffer *b, const char *class, const char *path)
{
    char want[300];

    snprintf(want, sizeof want, "<path class=\"%s\" d=\"%s\"/>\n", class, path);
    assert_string_equal(buffer_text(b), want);
    buffer_release(b);
}

static void test_lines(void **state)
{
    static const struct {
        size_t count;
        struct picture_point points[5];
        const char *path;
    } rows[] = {
        { 0, { { 0, 0 } }, "" },
        { 3, { { 0, 0 }, { 10, 50 }, { 20, 100 } }, "M0.0 100.0L10.0 50.0L20.0 0.0" },
        { 1, { { 5, 50 } }, "M5.0 50.0m-1 0h2" },
        { 1, { { 5, 150 } }, "" },
        /* in one column: first, lowest, highest, last, in their order and each once */
        { 5,
          { { 0, 10 }, { 0.1, 5 }, { 0.2, 90 }, { 0.3, 20 }, { 9, 9 } },
          "M0.0 90.0L0.1 95.0L0.2 10.0L0.3 80.0L9.0 91.0" },
        { 5,
          { { 0, 10 }, { 0.1, 90 }, { 0.2, 5 }, { 0.3, 20 }, { 9, 9 } },
          "M0.0 90.0L0.1 10.0L0.2 95.0L0.3 80.0L9.0 91.0" },
        { 4, { { 0, 5 }, { 0.1, 7 }, { 0.2, 6 }, { 0.3, 90 } }, "M0.0 95.0L0.3 10.0" },
        { 4, { { 0, 90 }, { 0.1, 7 }, { 0.2, 80 }, { 0.3, 90 } }, "M0.0 10.0L0.1 93.0L0.3 10.0" },
        { 3, { { 0, 5 }, { 0.1, 5 }, { 0.2, 5 } }, "M0.0 95.0L0.2 95.0" },
        { 2, { { 5, 10 }, { 5, 60 } }, "M5.0 90.0L5.0 40.0" },
        { 3, { { 0, 90 }, { 0, 5 }, { 0.1, 50 } }, "M0.0 10.0L0.0 95.0L0.1 50.0" },
        /* a column is half a unit */
        { 4, { { 0, 10 }, { 0.1, 40 }, { 0.6, 50 }, { 0.9, 20 } }, "M0.0 90.0L0.1 60.0L0.6 50.0L0.9 80.0" },
        /* gaps */
        { 4, { { 0, 0 }, { 10, NAN }, { 20, 50 }, { 30, 50 } }, "M0.0 100.0m-1 0h2M20.0 50.0L30.0 50.0" },
        /* edges */
        { 3, { { 0, 50 }, { 10, 150 }, { 20, 50 } }, "M0.0 50.0L5.0 0.0M15.0 0.0L20.0 50.0" },
        { 2, { { 0, -50 }, { 10, 150 } }, "M2.5 100.0L7.5 0.0" },
        { 2, { { 0, 150 }, { 10, 160 } }, "" },
    };
    const struct picture p = { .run_count = 1 };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct picture_curve c = { .points = rows[i].points, .count = rows[i].count };
        struct buffer b = BUFFER_EMPTY;

        picture_svg_line(&b, &p, &plot, &c, 0, "line");
        check_path(&b, "line c0 d0", rows[i].path);
    }
}

/* Runs of one colour differ in their dash. */
static void test_classes(void **state)
{
    static const struct {
        size_t run;
        const char *class;
    } rows[] = {
        { 1, "faint c1 d1" }, { 7, "faint c7 d7" }, { 8, "faint c0 d3" }, { 9, "faint c1 d4" }, { 16, "faint c0 d6" },
    };
    const struct picture p = { .run_count = 1 };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct picture_curve c = { .run = rows[i].run };
        struct buffer b = BUFFER_EMPTY;

        picture_svg_line(&b, &p, &plot, &c, 0, "faint");
        check_path(&b, rows[i].class, "");
    }
}

static void test_bands(void **state)
{
    static const struct {
        size_t count;
        struct picture_point low[3], high[3];
        int log_y;
        const char *path;
    } rows[] = {
        { 2, { { 0, 10 }, { 10, 20 } }, { { 0, 50 }, { 10, 60 } }, 0, "M0.0 50.0L10.0 40.0L10.0 80.0L0.0 90.0z" },
        /* in one column: the outermost */
        { 3,
          { { 0, 10 }, { 0.2, 5 }, { 0.4, 20 } },
          { { 0, 50 }, { 0.2, 60 }, { 0.4, 40 } },
          0,
          "M0.0 40.0L0.0 95.0z" },
        /* at the edges of the plot */
        { 2, { { 0, -10 }, { 10, -5 } }, { { 0, 50 }, { 10, 200 } }, 0, "M0.0 50.0L10.0 0.0L10.0 100.0L0.0 100.0z" },
        { 1, { { 0, 110 } }, { { 0, 120 } }, 0, "M0.0 0.0L0.0 0.0z" },
        /* a lower edge that has no logarithm */
        { 2,
          { { 0, -1 }, { 10, 1e20 } },
          { { 0, 1e50 }, { 10, 1e60 } },
          1,
          "M0.0 50.0L10.0 40.0L10.0 80.0L0.0 100.0z" },
        /* gaps */
        { 2, { { 0, 10 }, { 10, 10 } }, { { 0, NAN }, { 10, 50 } }, 0, "M10.0 50.0L10.0 90.0z" },
        { 3,
          { { 0, 10 }, { 10, NAN }, { 20, 10 } },
          { { 0, 50 }, { 10, 50 }, { 20, 50 } },
          0,
          "M0.0 50.0L0.0 90.0z\"/>\n<path class=\"f band c2\" d=\"M20.0 50.0L20.0 90.0z" },
        { 3,
          { { 0, 10 }, { 10, 10 }, { 20, 10 } },
          { { 0, 50 }, { 10, NAN }, { 20, 50 } },
          0,
          "M0.0 50.0L0.0 90.0z\"/>\n<path class=\"f band c2\" d=\"M20.0 50.0L20.0 90.0z" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct picture p = { .run_count = 1, .log_y = rows[i].log_y };
        const struct picture_curve c = {
            .run = 2, .points = rows[i].high, .count = rows[i].count, .low = rows[i].low, .high = rows[i].high
        };
        struct buffer b = BUFFER_EMPTY;

        picture_svg_band(&b, &p, &plot, &c);
        check_path(&b, "f band c2", rows[i].path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_classes),
                                        cmocka_unit_test(test_bands) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
