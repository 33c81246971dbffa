/* The live page as text: what stands where, at several widths, in UTF-8 and ASCII. */
#include "eventlog/tool/watch/watch_page.h"

#include "base/text.h"
#include "tests/check.h"
#include "tests/eventlog/tool/watch_runs.h"

#include <math.h>
#include <stdlib.h>

static const char *const names[] = { "mpi/train", "ps/train",
                                     "ps/a-name-that-is-far-too-long-for-most-of-all-terminals/x", NULL };

/* Each row with a line feed; a row is never wider than the page. */
static void draw(struct watch_page *p, struct watch_model *m, double now, struct buffer *out)
{
    buffer_clear(out);
    assert_int_equal(watch_page_draw(p, m, now, NULL), OK);
    assert_int_equal(p->grid.columns, m->columns);
    assert_int_equal(p->grid.rows, m->rows);
    for (int row = 0; row < m->rows; row++) {
        size_t begin = out->length;

        for (int column = 0; column < m->columns;)
            column = cell_grid_span(&p->grid, row, column, out);
        assert_int_equal(text_columns(out->data + begin, out->length - begin), m->columns);
        buffer_append_byte(out, '\n');
    }
}

static void holds(const struct buffer *b, const char *text)
{
    if (!strstr(buffer_text(b), text))
        fail_msg("'%s' is not in\n%s", text, buffer_text(b));
}

static void test_page(void **state)
{
    struct watch_model m = model_of(80, 24, names);
    struct watch_page p = { .colour = 1 };
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    add_point(&m, 0, "loss", 100, 1000100, NAN);
    add_point(&m, 0, "loss", 110, 1000110, NAN);
    m.runs[1].gone = 1;
    assert_int_equal(watch_model_update(&m, NULL), OK);
    draw(&p, &m, 1000115, &b);
    assert_memory_equal(b.data, "eventlog watch logs", 19);
    holds(&b, "3 runs, 1 NaN or inf, 1 gone");
    holds(&b, "> A mpi/train");
    holds(&b, "  B ps/train"); /* ps has one colour, so letters tell its runs apart */
    holds(&b, "  C ps/a-name");
    holds(&b, "110      5 s  live, NaN  0.9000\n");
    holds(&b, "ps/a-name-that-is-far");
    holds(&b, "mpi/train: step 110 at ");
    holds(&b, "loss is NaN since step 100");
    holds(&b, "tag 1 of 3; x: step ");
    holds(&b, "0.5 ┤");
    assert_null(strstr(buffer_text(&b), "▲"));
    watch_model_key(&m, '\t');
    draw(&p, &m, 1000115, &b);
    holds(&b, "▲");
    draw(&p, &m, 1000500, &b);
    holds(&b, "3 runs, 2 stalled, 1 NaN or inf, 1 gone");
    holds(&b, "stalled, NaN");
    m.run = 1;
    draw(&p, &m, 1000500, &b);
    holds(&b, "; its files are gone");
    buffer_release(&b);
    watch_page_release(&p);
    watch_model_release(&m);
}

/* Looks are kept where they mean something. */
static void test_looks(void **state)
{
    struct watch_model m = model_of(80, 24, names);
    struct watch_page p = { .colour = 1 };
    (void)state;

    add_point(&m, 2, "loss", 100, 1000100, INFINITY);
    assert_int_equal(watch_model_update(&m, NULL), OK);
    assert_int_equal(watch_page_draw(&p, &m, 1000100, NULL), OK);
    assert_int_equal(p.grid.cells[2 * 80 + 2].look.colour, CELL_BLUE);
    assert_int_equal(p.grid.cells[2 * 80 + 5].look.style, CELL_REVERSE);
    assert_int_equal(p.grid.cells[3 * 80 + 2].look.colour, CELL_RED); /* natural order: a-name before train */
    assert_int_equal(p.grid.cells[3 * 80 + 5].look.colour, CELL_RED);
    assert_int_equal(p.grid.cells[3 * 80 + 5].look.style, CELL_BOLD);
    p.colour = 0;
    watch_model_key(&m, ' ');
    assert_int_equal(watch_page_draw(&p, &m, 1000100, NULL), OK);
    for (int i = 0; i < 24 * 80; i++)
        assert_int_equal(p.grid.cells[i].look.colour, 0);
    assert_string_equal(p.grid.cells[2 * 80 + 2].text, " "); /* hidden: without its sign */
    assert_string_equal(p.grid.cells[3 * 80 + 2].text, "C");
    watch_page_release(&p);
    watch_model_release(&m);
}

/* Every size, every key: nothing is written beside the page (the sanitizers watch), no row is too wide. */
static void test_sizes(void **state)
{
    static const char keys[] = "\tx?xlsc/o\n \t/zz\n";
    struct watch_page p = { .ascii = 0 };
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    for (int columns = 1; columns < 210; columns += 1 + columns / 9)
        for (int rows = 1; rows < 60; rows += 1 + rows / 6) {
            struct watch_model m = model_of(columns, rows, names);

            p.ascii = !p.ascii;
            for (size_t i = 0; i < sizeof keys; i++) {
                draw(&p, &m, 1000100, &b);
                for (size_t k = 0; p.ascii && k < b.length; k++)
                    assert_true((unsigned char)b.data[k] < 0x7f);
                watch_model_key(&m, keys[i]);
            }
            watch_model_release(&m);
        }
    buffer_release(&b);
    watch_page_release(&p);
}

static void test_widths(void **state)
{
    static const struct {
        int columns;
        const char *run;
    } cases[] = {
        { 60, " ps/a-name-tha…-terminals/x " },
        { 80, " ps/a-name-that-is-far-t…ost-of-all-terminals/x " },
        { 200, "ps/a-name-that-is-far-too-long-for-most-of-all-terminals/x" },
    };
    struct watch_page p = { .ascii = 0 };
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch_model m = model_of(cases[i].columns, 24, names);

        draw(&p, &m, 1000100, &b);
        holds(&b, cases[i].run);
        watch_model_release(&m);
    }
    buffer_release(&b);
    watch_page_release(&p);
}

/* Over steps a run that went back is drawn in order, and its points stay as they were read. */
static void test_restarted_run(void **state)
{
    static const char *const one[] = { "a", NULL };
    struct watch_model m = model_of(80, 24, one);
    struct watch_page p = { .ascii = 1 };
    struct buffer b = BUFFER_EMPTY;
    const struct scalar_series *s;
    (void)state;

    add_point(&m, 0, "acc", 5, 1000200, 0.5f);
    assert_int_equal(watch_model_update(&m, NULL), OK);
    draw(&p, &m, 1000200, &b);
    holds(&b, "a       5      0 s  live   0.5000");
    s = watch_model_series(&m, &m.runs[0], m.tag);
    assert_int_equal(s->points[s->count - 1].step, 5);
    buffer_release(&b);
    watch_page_release(&p);
    watch_model_release(&m);
}

static void test_nothing_yet(void **state)
{
    struct watch_model m = { .title = "eventlog watch logs", .columns = 60, .rows = 10 };
    struct watch_page p = { .ascii = 1 };
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    draw(&p, &m, 1000000, &b);
    holds(&b, "no event files (names with 'tfevents') yet; waiting");
    watch_model_key(&m, '?');
    draw(&p, &m, 1000000, &b);
    holds(&b, "show or hide the selected run");
    buffer_release(&b);
    watch_page_release(&p);
    watch_model_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),   cmocka_unit_test(test_looks),         cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_widths), cmocka_unit_test(test_restarted_run), cmocka_unit_test(test_nothing_yet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
