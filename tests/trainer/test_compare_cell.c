/* The cells of a comparison: names, words of the command line, order in the rounds; speeds from a curve. */
#include "trainer/compare/outcome.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double found, double wanted, double off)
{
    assert_true(fabs(found - wanted) <= off);
}

static const char *const names[] = { "single", "mirrored", "mpi", "ring", "ps", NULL };

static void test_cells(void **state)
{
    struct cell *cells;
    struct error e = { 0 };
    size_t count;

    (void)state;
    assert_int_equal(cells_parse(&cells, &count, "mpi,ps:async:staleness=2", "1,4", names, &e), OK);
    assert_int_equal(count, 4);
    assert_string_equal(cells[0].name, "mpi-1");
    assert_string_equal(cells[1].name, "mpi-4");
    assert_int_equal(cells[1].workers, 4);
    assert_string_equal(cells[2].strategy, "ps:async:staleness=2");
    assert_string_equal(cells[3].name, "ps-async-staleness-2-4");
    free(cells);
}

static void refuses(const char *strategies, const char *ranks, const char *wanted)
{
    struct cell *cells;
    struct error e = { 0 };
    size_t count;

    assert_int_equal(cells_parse(&cells, &count, strategies, ranks, names, &e), ERR_ARG);
    assert_null(cells);
    assert_string_equal(e.message, wanted);
}

static void test_refused(void **state)
{
    (void)state;
    refuses("mpj", "1", "--strategies: there is no strategy 'mpj'; did you mean 'mpi'?");
    refuses("ps-async", "1", "--strategies: there is no strategy 'ps-async'; did you mean 'ps:async'?");
    refuses("ps --async", "1", "--strategies: there is no strategy 'ps --async'; did you mean 'ps:async'?");
    refuses("mpi,mpi", "1,2", "mpi with 1 worker is given twice");
    refuses("mpi", "2,2", "mpi with 2 workers is given twice");
    refuses("mpi", "0", "--ranks: '0' is not a number of workers from 1 to 4096");
    refuses("mpi", "two", "--ranks: 'two' is not a number of workers from 1 to 4096");
    refuses("mpi,,ps", "1", "',ps': nothing before a comma");
    refuses("", "1", "nothing to compare; use --strategies mpi,ps --ranks 1,2");
    refuses("mpi", "", "nothing to compare; use --strategies mpi,ps --ranks 1,2");
}

static void words_are(const char *strategy, const char *wanted)
{
    struct cell_words words;
    struct error e = { 0 };
    struct cell *cells;
    char text[400] = "";
    size_t count;

    assert_int_equal(cells_parse(&cells, &count, strategy, "1", names, &e), OK);
    if (cell_words(&cells[0], &words, &e) == OK)
        for (size_t i = 0; i < words.count; i++)
            strcat(strcat(text, i ? " " : ""), words.words[i]);
    assert_string_equal(text, wanted);
    free(cells);
}

static void test_words(void **state)
{
    (void)state;
    words_are("mpi", "--run-option mpi");
    words_are("ps:async:staleness=2", "--run-option ps --async --staleness 2");
    words_are("mirrored:weights=shared", "--run-option mirrored --weights shared");
    words_are("ps:servers=", "--run-option ps --servers ");
    words_are("ps::async", ""); /* an option without a name */
    words_are("ps:=3", "");
    /* more than there is room for */
    words_are("ps:a:b:c:d:e:f:g:h:i:j:k:l:m:n:o:p:q:r:s:t:u:v:w:x:y:z:a:b:c:d:e:f:g:h:i:j:k:l", "");
}

/* Every round has every cell once, and no two rounds of three begin with the same. */
static void test_turns(void **state)
{
    (void)state;
    for (size_t count = 1; count < 20; count++)
        for (int rounds = 1; rounds < 6; rounds++)
            for (int round = 1; round <= rounds; round++) {
                char seen[20] = "";

                for (size_t place = 0; place < count; place++)
                    assert_int_equal(seen[cell_turn(count, rounds, round, place)]++, 0);
            }
    assert_int_equal(cell_turn(6, 3, 1, 0), 0);
    assert_int_equal(cell_turn(6, 3, 2, 0), 2);
    assert_int_equal(cell_turn(6, 3, 3, 0), 4);
    assert_int_equal(cell_turn(6, 3, 3, 5), 3);
}

static void test_speeds(void **state)
{
    /* a first step that takes 5 s, then 10 steps a second, then 20 */
    static const struct curve_point points[] = { { 1, 5 }, { 11, 6 }, { 101, 15 }, { 201, 20 } };

    (void)state;
    assert_near(curve_speed(points, 4), 190.0 / 14, 1e-12); /* from step 11 on */
    assert_near(curve_speed(points, 2), 10, 1e-12);         /* nothing else is known */
    assert_near(curve_speed(points, 1), 0, 0);
    assert_near(curve_speed(points, 0), 0, 0);
    /* step 100 at 14.9 s, step 200 at 19.95 s */
    assert_near(curve_speed_between(points, 4, 100, 200), 100 / 5.05, 1e-9);
    assert_near(curve_speed_between(points, 4, 101, 201), 20, 1e-12);
    assert_near(curve_speed_between(points, 4, 100, 202), 0, 0);
    assert_near(curve_speed_between(points, 4, 0, 200), 0, 0);
}

static void test_evaluations(void **state)
{
    static const struct evaluation list[] = { { 0, 0, 0.1 }, { 50, 4, 0.5 }, { 100, 9, 0.4 } };

    (void)state;
    assert_ptr_equal(curve_evaluation(list, 3, 100, INFINITY), &list[2]);
    assert_ptr_equal(curve_evaluation(list, 3, 99, INFINITY), &list[1]);
    assert_ptr_equal(curve_evaluation(list, 3, INT64_MAX, 8.9), &list[1]);
    assert_ptr_equal(curve_evaluation(list, 3, INT64_MAX, 0), &list[0]);
    assert_null(curve_evaluation(list, 3, -1, INFINITY));
    assert_null(curve_evaluation(list, 0, 100, INFINITY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells), cmocka_unit_test(test_refused), cmocka_unit_test(test_words),
        cmocka_unit_test(test_turns), cmocka_unit_test(test_speeds),  cmocka_unit_test(test_evaluations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
