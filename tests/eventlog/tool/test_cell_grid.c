/* Text into cells: wide and combining characters, colours, edges. */
#include "eventlog/tool/picture/cell_grid.h"

#include "tests/check.h"

#include <string.h>

static const struct cell_look plain = { 0, 0 };

static void assert_row(const struct cell_grid *g, int row, const char *want)
{
    struct buffer b = BUFFER_EMPTY;

    for (int column = 0; column < g->columns;)
        column = cell_grid_span(g, row, column, &b);
    assert_string_equal(buffer_text(&b), want);
    buffer_release(&b);
}

static void test_text(void **state)
{
    static const struct {
        const char *text;
        int column, end, ascii, behind;
        const char *want;
    } cases[] = {
        { "abc", 0, 8, 0, 3, "abc     " },
        { "abc", 6, 8, 0, 8, "      ab" },
        { "abcdef", 1, 4, 0, 4, " abc    " },
        { "abc", 8, 8, 0, 8, "        " },
        { "abc", 0, 99, 0, 3, "abc     " },
        { "日本", 0, 8, 0, 4, "日本    " },
        { "日本", 0, 3, 0, 2, "日      " }, /* half of a character is none */
        { "e\xcc\x81x", 0, 8, 0, 2, "e\xcc\x81x      " },
        { "\xcc\x81x", 0, 8, 0, 1, "x       " }, /* nothing to combine with */
        { "日x", 0, 8, 1, 2, "?x      " },
    };
    struct cell_grid g = { .cells = NULL };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g.ascii = cases[i].ascii;
        assert_true(cell_grid_begin(&g, 8, 1));
        assert_int_equal(
            cell_grid_put(&g, 0, cases[i].column, cases[i].end, plain, cases[i].text, strlen(cases[i].text)),
            cases[i].behind);
        assert_row(&g, 0, cases[i].want);
    }
    assert_int_equal(cell_grid_put(&g, 1, 0, 8, plain, "x", 1), 0); /* below the page */
    cell_grid_release(&g);
}

static void test_looks(void **state)
{
    static const char text[] = "a\033[31mb\033[0mc\033[34m";
    struct cell_grid g = { .cells = NULL }, into = { .cells = NULL };
    struct buffer b = BUFFER_EMPTY;
    (void)state;

    assert_true(cell_grid_begin(&g, 4, 1));
    assert_int_equal(cell_grid_put(&g, 0, 0, 4, (struct cell_look){ CELL_GREEN, CELL_BOLD }, text, strlen(text)), 3);
    assert_int_equal(g.cells[0].look.colour, CELL_GREEN);
    assert_int_equal(g.cells[1].look.colour, CELL_RED);
    assert_int_equal(g.cells[1].look.style, CELL_BOLD);
    assert_int_equal(g.cells[2].look.colour, CELL_GREEN);
    assert_int_equal(cell_grid_span(&g, 0, 0, &b), 1);
    cell_grid_tint(&g, 0, 1, 9, (struct cell_look){ CELL_CYAN, CELL_REVERSE });
    assert_int_equal(g.cells[1].look.colour, CELL_RED);
    assert_int_equal(g.cells[1].look.style, CELL_BOLD | CELL_REVERSE);
    assert_int_equal(g.cells[3].look.colour, CELL_CYAN);
    assert_true(cell_grid_begin(&into, 6, 3));
    cell_grid_copy(&into, 2, 3, &g); /* as far as there is room */
    assert_row(&into, 2, "   abc");
    assert_row(&into, 1, "      ");
    buffer_release(&b);
    cell_grid_release(&into);
    cell_grid_release(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_text), cmocka_unit_test(test_looks) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
