/* Rounds of cells, brought together: medians, spread, efficiency, precision at equal steps and time; the tables. */

#include "trainer/compare/comparison.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

static void assert_near(double found, double wanted, double off)
{
    assert_true(fabs(found - wanted) <= off);
}

static struct evaluation fast[] = { { 0, 0, 0.1 }, { 50, 2, 0.5 }, { 100, 4, 0.8 } };
static struct evaluation slow[] = { { 0, 0, 0.1 }, { 50, 4, 0.6 }, { 110, 8, 0.9 } };

/* 100 samples a step, 60000 an epoch */
#define RUN(name, how, n, turn, speed, list) \
    { \
        .cell = name, .strategy = how, .workers = n, .round = turn, .ranks = n, .cores = 2, .steps_per_second = speed, \
        .steady = speed, .samples_per_step = 100.0 * n, .seconds = list[2].seconds, .weights = "0123456789abcdef", \
        .dropped = -1, .evaluations = list, .evaluation_count = 3 \
    }

static void make(struct comparison *c, const struct outcome *list, size_t count)
{
    struct error e = { 0 };

    assert_int_equal(comparison_make(c, list, count, &e), OK);
}

static void test_rounds(void **state)
{
    struct outcome list[] = {
        RUN("ring-2", "ring", 2, 1, 15, fast), RUN("ring-1", "ring", 1, 1, 10, slow),
        RUN("mpi-2", "mpi", 2, 1, 18, slow),   RUN("ring-2", "ring", 2, 2, 20, fast),
        RUN("ring-1", "ring", 1, 2, 12, slow), RUN("ring-2", "ring", 2, 3, 16, fast),
        RUN("mpi-2", "mpi", 2, 2, 1, slow),
    };
    struct comparison c;

    (void)state;
    list[6].status = 1;
    strcpy(list[6].reason, "it was killed");
    strcpy(list[3].weights, "fedcba9876543210");
    make(&c, list, 7);
    assert_int_equal(c.count, 3);
    assert_int_equal(c.rounds, 3);
    assert_string_equal(c.rows[0].cell, "ring-1"); /* the first strategy, with rising workers */
    assert_string_equal(c.rows[1].cell, "ring-2");
    assert_string_equal(c.rows[2].cell, "mpi-2");
    assert_near(c.rows[1].steps_per_second.median, 16, 0);
    assert_near(c.rows[1].steps_per_second.least, 15, 0);
    assert_near(c.rows[1].steps_per_second.most, 20, 0);
    assert_near(spread_width(&c.rows[1].steps_per_second), 2.5 / 16, 1e-12);
    assert_near(c.rows[0].steps_per_second.median, 11, 0); /* of an even number */
    assert_near(c.rows[1].speed_up, 3200.0 / 1100, 1e-12);
    assert_near(c.rows[1].efficiency, 1600.0 / 1100, 1e-12);
    assert_near(c.rows[2].efficiency, 1800.0 / 1100, 1e-12); /* against ring's one worker */
    assert_string_equal(c.rows[0].weights, "0123456789abcdef");
    assert_string_equal(c.rows[1].weights, COMPARISON_DIFFER);
    assert_int_equal(c.rows[2].rounds, 1);
    assert_int_equal(c.rows[2].failed, 1);
    assert_string_equal(c.rows[2].reason, "it was killed");
    assert_int_equal(c.rows[0].dropped.count, 0);
    /* step 100 is the last that all have passed; the fastest took 4 s in each round */
    assert_int_equal(c.equal_step, 100);
    assert_near(c.equal_seconds, 4, 0);
    assert_near(c.rows[0].at_equal_steps.median, 0.6, 0);
    assert_near(c.rows[0].at_equal_time.median, 0.6, 0);
    assert_near(c.rows[1].at_equal_steps.median, 0.8, 0);
    assert_near(c.rows[0].at_end.median, 0.9, 0);
    comparison_release(&c);
}

/* A run that failed, and went well the next time. */
static void test_superseded(void **state)
{
    struct outcome list[] = { RUN("mpi-1", "mpi", 1, 1, 10, fast), RUN("mpi-1", "mpi", 1, 1, 14, fast) };
    struct comparison c;

    (void)state;
    list[0].status = 1;
    make(&c, list, 2);
    assert_int_equal(c.rows[0].rounds, 1);
    assert_int_equal(c.rows[0].failed, 0);
    assert_near(c.rows[0].steps_per_second.median, 14, 0);
    comparison_release(&c);
}

static void test_nothing(void **state)
{
    struct buffer out = BUFFER_EMPTY;
    struct comparison c;

    (void)state;
    make(&c, NULL, 0);
    comparison_text(&c, &(struct text_style){ 80, 1 }, &out);
    assert_int_equal(c.count, 0);
    assert_true(buffer_ok(&out));
    buffer_release(&out);
    comparison_release(&c);
}

/* The text has this line, or part of one, with single blanks; no line is wider than the page. */
static void has_line(const struct buffer *out, const char *wanted)
{
    struct buffer squeezed = BUFFER_EMPTY;

    for (const char *line = buffer_text(out); *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    for (const char *at = buffer_text(out); *at; at++)
        if (at[0] != ' ' || at[1] != ' ')
            buffer_append_byte(&squeezed, *at);
    if (!strstr(buffer_text(&squeezed), wanted))
        fail_msg("no '%s' in:\n%s", wanted, buffer_text(out));
    buffer_release(&squeezed);
}

static void test_text(void **state)
{
    struct outcome list[] = { RUN("ring-1", "ring", 1, 1, 10, slow), RUN("ring-4", "ring", 4, 1, 8, fast),
                              RUN("ps-async-staleness-2-4", "ps:async:staleness=2", 4, 1, 8, fast) };
    struct buffer out = BUFFER_EMPTY;
    struct comparison c;

    (void)state;
    list[1].sent = 4096;
    strcpy(list[1].busiest, "worker 3");
    list[1].busiest_sent = 2048;
    list[2].staleness_mean = 3.25;
    list[2].staleness_max = 9;
    list[2].dropped = 17;
    make(&c, list, 3);
    comparison_text(&c, &(struct text_style){ 80, 1 }, &out);
    has_line(&out, "\nring 1 10.0 - 1000 100 % 0.0 % 01234567\n");
    has_line(&out, "\nring 4* 8.00 - 3200 80 % 0.0 % 01234567\n");
    has_line(&out, "\nring 4* 4.00 KiB worker 3 2.00 KiB - - -\n");
    has_line(&out, "ss=2 4* - - - 3.25 9 17\n");
    has_line(&out, "strategy workers at step 100 +- after 4.0 s at its end after\n");
    has_line(&out, "\nring 1 0.6000 - 0.6000 0.9000 8.0 s\n");
    has_line(&out, "*: more ranks or threads than cores");
    buffer_release(&out);
    comparison_text(&c, &(struct text_style){ 0, 1 }, &out);
    assert_non_null(strstr(buffer_text(&out), "4.00 KiB  worker 3"));
    buffer_release(&out);
    comparison_csv(&c, &out);
    assert_non_null(
        strstr(buffer_text(&out), "\nring-4,ring,4,4,2,1,0,0123456789abcdef,worker 3,3.2,0.8,8.0,8.0,8.0,"));
    buffer_release(&out);
    comparison_json(&c, "--model x", &out);
    assert_non_null(strstr(buffer_text(&out), "\"cell\":\"ring-4\",\"strategy\":\"ring\",\"workers\":4,\"ranks\":4"));
    assert_non_null(strstr(buffer_text(&out), "\"staleness_mean\":{\"median\":3.25,\"least\":3.25,\"most\":3.25}"));
    buffer_release(&out);
    comparison_release(&c);
}

/* Where the time goes: two workers need 30 ms more, of which the server costs two thirds; what gives less than a tenth is
 * not said. A strategy with one number of workers has no loss; results of an earlier version have no times. */
static void test_times(void **state)
{
    struct outcome list[] = { RUN("ps-1", "ps", 1, 1, 10, fast), RUN("ps-2", "ps", 2, 1, 9, fast),
                              RUN("mpi-2", "mpi", 2, 1, 9, fast), RUN("ring-2", "ring", 2, 1, 9, fast) };
    const double one[PHASE_COUNT] = { 0.001, 0.2, 0.4, 0.002, 0, 0.01, 0, 0.001 };
    const double two[PHASE_COUNT] = { 0.001, 0.2021, 0.408, 0.022, 0, 0.01, 0, 0.001 };
    struct buffer out = BUFFER_EMPTY;
    struct comparison c;

    (void)state;
    memcpy(list[0].phases, one, sizeof one);
    memcpy(list[1].phases, two, sizeof two);
    memcpy(list[2].phases, two, sizeof two);
    list[0].serving = 0.0125;
    list[1].serving = 0.025;
    list[2].serving = list[3].serving = -1;
    make(&c, list, 4);
    comparison_text(&c, &(struct text_style){ 80, 1 }, &out);
    has_line(&out, "\nps 1 614 200 400 2 0 10 1.2 %\n");
    has_line(&out, "\nps 2 644 202 408 22 0 10 2.5 %\n");
    has_line(&out, "\nmpi 2 644 202 408 22 0 10 -\n");
    has_line(&out,
             "\n\nps: a step of 2 workers takes 30 ms (4.9 %) more than that of 1: waiting 20,\nbackward 8 ms.\n");
    assert_null(strstr(buffer_text(&out), "mpi: a step"));
    buffer_release(&out);
    comparison_csv(&c, &out);
    assert_non_null(strstr(buffer_text(&out), ",backward_seconds_per_step,"));
    assert_non_null(strstr(buffer_text(&out), ",0.408,0.408,0.408,0.022,"));
    buffer_release(&out);
    comparison_release(&c);
}

/* Cells during which other programs used the processors, in a round at least, are named. */
static void test_busy(void **state)
{
    struct outcome list[] = { RUN("ps-1", "ps", 1, 1, 10, fast), RUN("ps-1", "ps", 1, 2, 9, fast),
                              RUN("mpi-2", "mpi", 2, 1, 9, fast), RUN("ring-2", "ring", 2, 1, 9, fast) };
    struct buffer out = BUFFER_EMPTY;
    struct comparison c;

    (void)state;
    list[0].others = 0.0625;
    list[1].others = 0.125;
    list[2].others = 0.75;
    list[3].others = -1;
    make(&c, list, 4);
    comparison_text(&c, &(struct text_style){ 80, 1 }, &out);
    has_line(&out, "\nOther programs used up to 75 % of the processors, so these speeds say little:\nps-1, mpi-2.\n");
    buffer_release(&out);
    comparison_json(&c, "", &out);
    assert_non_null(strstr(buffer_text(&out), "\"other_programs_share\":{\"median\":0.09375,\"least\":0.0625,"));
    assert_non_null(strstr(buffer_text(&out), "\"other_programs_share\":null"));
    buffer_release(&out);
    comparison_release(&c);
    list[1].others = list[2].others = 0.1;
    make(&c, list, 4);
    comparison_text(&c, &(struct text_style){ 80, 1 }, &out);
    assert_null(strstr(buffer_text(&out), "Other programs"));
    buffer_release(&out);
    comparison_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_superseded), cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_text),   cmocka_unit_test(test_times),      cmocka_unit_test(test_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
