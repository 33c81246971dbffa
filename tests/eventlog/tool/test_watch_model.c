/* What keys and the mouse do to the live page, which tags it shows, and what state a run is in. */
#include "eventlog/tool/watch/watch_model.h"

#include "tests/check.h"
#include "tests/eventlog/tool/watch_runs.h"

#include <math.h>
#include <stdio.h>

static const char *const names[] = { "r10", "r2", "r1", NULL };

static const char *run_of(const struct watch_model *m)
{
    return m->runs[m->run].name;
}

static const char *tag_of(const struct watch_model *m)
{
    return m->tags.entries[m->tag].text;
}

static void press(struct watch_model *m, const char *keys)
{
    for (; *keys; keys++)
        assert_int_equal(watch_model_key(m, (unsigned char)*keys), 1);
    watch_model_lay_out(m);
}

static void test_states(void **state)
{
    static const struct {
        double after, every, limit; /* seconds: since the newest point, between points, --stalled-after */
        float value;
        int gone, ended;
        enum watch_state want;
    } cases[] = {
        { 0, 1, 0, 1, 0, 0, WATCH_LIVE },       { 60, 1, 0, 1, 0, 0, WATCH_LIVE },
        { 61, 1, 0, 1, 0, 0, WATCH_STALLED },   { 299, 30, 0, 1, 0, 0, WATCH_LIVE },
        { 301, 30, 0, 1, 0, 0, WATCH_STALLED }, { 6, 1, 5, 1, 0, 0, WATCH_STALLED },
        { 301, 30, 400, 1, 0, 0, WATCH_LIVE },  { 86401, 1, 0, 1, 0, 0, WATCH_OLD },
        { -5, 1, 0, 1, 0, 0, WATCH_LIVE },      { 1e5, 20000, 0, 1, 0, 0, WATCH_OLD },
        { 1, 1, 0, NAN, 0, 0, WATCH_LIVE },     { 1, 1, 0, INFINITY, 0, 0, WATCH_LIVE },
        { 1, 1, 0, 1, 1, 0, WATCH_GONE },       { 61, 1, 0, 1, 0, 1, WATCH_ENDED },
        { 60, 1, 0, 1, 0, 1, WATCH_LIVE },      { 86401, 1, 0, 1, 0, 1, WATCH_OLD },
    };
    (void)state;

    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const double unit = i % 2 ? 1000 : 1; /* wall times in milliseconds are taken for that */
        struct watch_model m = { .title = "" };
        struct watch_status s;

        assert_int_equal(watch_model_add_run(&m, "a", NULL), OK);
        assert_int_equal(watch_status_of(&m.runs[0], 0, 0).state, WATCH_EMPTY);
        for (int k = 0; k < 5; k++)
            add_point(&m, 0, "loss", k, unit * (1e9 + k * cases[i / 2].every), k == 4 ? cases[i / 2].value : 1);
        m.runs[0].gone = cases[i / 2].gone;
        m.runs[0].ended = cases[i / 2].ended;
        s = watch_status_of(&m.runs[0], 1e9 + 4 * cases[i / 2].every + cases[i / 2].after, cases[i / 2].limit);
        assert_int_equal(s.state, cases[i / 2].want);
        assert_int_equal(s.newest->step, 4);
        assert_true(s.age == (cases[i / 2].after > 0 ? cases[i / 2].after : 0));
        assert_int_equal(s.diverged != NULL, !isfinite(cases[i / 2].value));
        watch_model_release(&m);
    }
}

/* Only a newest value counts, and NaN before infinity. */
static void test_diverged(void **state)
{
    struct watch_model m = { .title = "" };
    (void)state;

    assert_int_equal(watch_model_add_run(&m, "a", NULL), OK);
    add_point(&m, 0, "a", 1, 1, INFINITY);
    assert_string_equal(watch_status_of(&m.runs[0], 1, 0).diverged->tag, "a");
    add_point(&m, 0, "b", 1, 1, NAN);
    add_point(&m, 0, "c", 1, 1, INFINITY);
    assert_string_equal(watch_status_of(&m.runs[0], 1, 0).diverged->tag, "b");
    add_point(&m, 0, "b", 2, 2, 1);
    add_point(&m, 0, "c", 2, 2, 1);
    add_point(&m, 0, "a", 2, 2, 1);
    assert_null(watch_status_of(&m.runs[0], 2, 0).diverged);
    watch_model_release(&m);
}

static void test_runs(void **state)
{
    struct watch_model m = model_of(80, 24, names);
    (void)state;

    assert_string_equal(run_of(&m), "r10"); /* the first that was found, the last in order */
    press(&m, "k");
    assert_string_equal(run_of(&m), "r2");
    press(&m, "kkk");
    assert_string_equal(run_of(&m), "r1");
    watch_model_key(&m, WATCH_KEY_DOWN);
    assert_string_equal(run_of(&m), "r2");
    watch_model_key(&m, WATCH_KEY_END);
    assert_string_equal(run_of(&m), "r10");
    watch_model_key(&m, WATCH_KEY_HOME);
    press(&m, " ");
    assert_true(m.runs[2].hidden && !m.runs[0].hidden && !m.runs[1].hidden);
    press(&m, " ");
    assert_false(m.runs[2].hidden);
    /* One that comes keeps what is selected. */
    assert_int_equal(watch_model_add_run(&m, "r0", NULL), OK);
    assert_string_equal(run_of(&m), "r1");
    assert_int_equal(m.order[0], 3);
    assert_int_equal(watch_model_key(&m, 'q'), 0);
    watch_model_release(&m);
}

/* The list scrolls so that the selected run is in it, at any height. */
static void test_scrolling(void **state)
{
    (void)state;

    for (int rows = 1; rows < 60; rows++) {
        struct watch_model m = { .title = "", .columns = 80, .rows = rows };
        char many[30][8];

        for (int i = 0; i < 30; i++) {
            snprintf(many[i], sizeof many[i], "r%02d", i);
            assert_int_equal(watch_model_add_run(&m, many[i], NULL), OK);
        }
        for (int i = 0; i < 60; i++) {
            watch_model_lay_out(&m);
            assert_in_range(m.layout.list.rows, 1, 30);
            assert_in_range(m.run, m.top, m.top + (size_t)m.layout.list.rows - 1);
            assert_true(m.top + (size_t)m.layout.list.rows <= 30);
            assert_true(rows < 6 || m.layout.list.row + m.layout.list.rows + 3 <= rows);
            watch_model_key(&m, i < 30 ? WATCH_KEY_DOWN : WATCH_KEY_PAGE_UP);
        }
        watch_model_release(&m);
    }
}

static void test_tags(void **state)
{
    struct watch_model m = model_of(80, 24, names);
    (void)state;

    assert_string_equal(tag_of(&m), "acc");
    press(&m, "\t");
    assert_string_equal(tag_of(&m), "loss");
    press(&m, "\t\t");
    assert_string_equal(tag_of(&m), "acc");
    watch_model_key(&m, WATCH_KEY_LEFT);
    assert_string_equal(tag_of(&m), "time");
    press(&m, "/LO");
    assert_true(m.filtering && m.shown_tag_count == 1);
    assert_string_equal(tag_of(&m), "loss");
    press(&m, "q\b\xc3\xa4\x7f");
    assert_string_equal(m.filter, "LO");
    press(&m, "\n");
    assert_false(m.filtering);
    press(&m, "/\x7f\x7f\x7f?*m\n");
    assert_int_equal(m.shown_tag_count, 1);
    assert_string_equal(tag_of(&m), "time");
    press(&m, "/zz");
    assert_int_equal(m.shown_tag_count, 0);
    assert_int_equal(m.layout.chart_count, 0);
    press(&m, "\t\x1b");
    assert_int_equal(m.shown_tag_count, 3);
    /* A tag that comes does not take the place of one that was chosen. */
    add_point(&m, 0, "aaa_loss", 1, 1000200, 1);
    assert_int_equal(watch_model_update(&m, NULL), OK);
    assert_string_equal(tag_of(&m), "time");
    watch_model_release(&m);
}

static void test_drawing(void **state)
{
    struct watch_model m = model_of(80, 24, names);
    uint64_t version;
    (void)state;

    press(&m, "x");
    assert_int_equal(m.axis, PICTURE_RELATIVE);
    press(&m, "x");
    assert_int_equal(m.axis, PICTURE_WALL);
    version = m.version;
    press(&m, "x");
    assert_int_equal(m.axis, PICTURE_STEP);
    assert_true(m.version > version);
    press(&m, "l");
    assert_true(m.log_y);
    m.smoothing = 0.7;
    press(&m, "s");
    assert_true(m.smoothing == 0.9);
    press(&m, "ss");
    assert_true(m.smoothing == 0);
    press(&m, "?");
    assert_true(m.help);
    press(&m, "x");
    assert_true(!m.help && m.axis == PICTURE_STEP);
    version = m.version;
    assert_int_equal(watch_model_update(&m, NULL), OK);
    assert_int_equal(m.version, version); /* no news, nothing to draw */
    add_point(&m, 0, "acc", 100, 1000100, 1);
    assert_int_equal(watch_model_update(&m, NULL), OK);
    assert_true(m.version > version);
    watch_model_release(&m);
}

/* As many charts as are well seen, within the page, none over another; one with 'c'. */
static void test_layout(void **state)
{
    static const struct {
        int columns, rows;
        size_t charts;
    } cases[] = {
        { 80, 24, 1 }, { 60, 24, 1 }, { 130, 24, 2 }, { 200, 50, 3 },
        { 80, 36, 2 }, { 80, 50, 3 }, { 80, 11, 0 },  { 29, 40, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch_model m = model_of(cases[i].columns, cases[i].rows, names);

        assert_int_equal(m.layout.chart_count, cases[i].charts);
        for (size_t k = 0; k < m.layout.chart_count; k++) {
            const struct watch_rectangle *r = &m.layout.charts[k], *before = k ? r - 1 : NULL;

            assert_true(r->column >= 0 && r->column + r->columns <= cases[i].columns);
            assert_true(r->row >= m.layout.list.row + m.layout.list.rows + 2 && r->row + r->rows < cases[i].rows);
            assert_true(!before || r->row > before->row ? r->row >= (before ? before->row + before->rows : 0)
                                                        : r->column > before->column + before->columns - 1);
        }
        press(&m, "c");
        assert_int_equal(m.layout.chart_count, cases[i].charts > 0);
        watch_model_release(&m);
    }
}

static void test_mouse(void **state)
{
    struct watch_model m = model_of(200, 50, names);
    const struct watch_rectangle *charts = m.layout.charts;
    (void)state;

    watch_model_click(&m, 10, m.layout.list.row);
    assert_string_equal(run_of(&m), "r1");
    assert_false(m.runs[2].hidden);
    watch_model_click(&m, 2, m.layout.list.row + 1);
    assert_string_equal(run_of(&m), "r2");
    assert_true(m.runs[1].hidden);
    watch_model_click(&m, 10, m.layout.list.row + 3); /* below the list */
    assert_string_equal(run_of(&m), "r2");
    watch_model_click(&m, charts[1].column + 5, charts[1].row + 2);
    assert_string_equal(tag_of(&m), "loss");
    watch_model_wheel(&m, 10, m.layout.list.row, 1);
    assert_string_equal(run_of(&m), "r10");
    watch_model_wheel(&m, 10, m.layout.list.row, -1);
    assert_string_equal(run_of(&m), "r2");
    watch_model_resize(&m, 80, 24);
    watch_model_lay_out(&m);
    watch_model_wheel(&m, 40, m.layout.area.row + 1, 1);
    assert_string_equal(tag_of(&m), "time");
    watch_model_release(&m);
}

/* A run that is read again has the points that come then. */
static void test_forgetting(void **state)
{
    struct watch_model m = model_of(80, 24, names);
    (void)state;

    watch_model_forget(&m, 0);
    assert_null(watch_model_series(&m, &m.runs[0], m.tag));
    add_point(&m, 0, "acc", 7, 2000000, 3);
    assert_int_equal(watch_model_update(&m, NULL), OK);
    assert_int_equal(watch_model_series(&m, &m.runs[0], m.tag)->count, 1);
    assert_int_equal(watch_status_of(&m.runs[0], 2000000, 0).newest->step, 7);
    watch_model_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),    cmocka_unit_test(test_diverged), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_scrolling), cmocka_unit_test(test_tags),     cmocka_unit_test(test_drawing),
        cmocka_unit_test(test_layout),    cmocka_unit_test(test_mouse),    cmocka_unit_test(test_forgetting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
