/* The table, the sentence and the JSON of all ranks' time. */
#include "trainer/timing/time_report.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, STEPS = 100 };

/* Milliseconds of each phase per step. */
static struct phase_times per_step(int64_t steps, const double *milliseconds)
{
    struct phase_times t = { .steps = steps };

    for (int p = 0; p < PHASE_COUNT; p++)
        t.nanoseconds[p] = (int64_t)(milliseconds[p] * 1e6 * (double)steps + 0.5);
    return t;
}

static const double fast[] = { 0.25, 10, 20, 20, 1, 0.5, 0, 0.25 }, slow[] = { 0.25, 10, 40, 0, 1, 0.5, 0, 0.25 };
static const double idle[] = { 0, 0, 0, 50, 1, 0.5, 0, 0.5 }, busy[] = { 0, 0, 0, 1, 30, 20, 0, 1 };

static void take_table(const struct rank_times *t, int columns, char *out, size_t size)
{
    struct buffer b = BUFFER_EMPTY;

    time_report_table(&b, t, columns, 1);
    assert_true(buffer_ok(&b) && b.length < size);
    memcpy(out, b.data, b.length + 1);
    buffer_release(&b);
}

static void test_table(void **state)
{
    struct phase_times all[RANKS] = { per_step(STEPS, fast), per_step(STEPS, fast), per_step(STEPS, slow) };
    struct rank_times t = { all, RANKS, RANKS, 1, NULL };
    char text[4096];

    (void)state;
    take_table(&t, 80, text, sizeof text);
    assert_string_equal(text, "time of each rank, in milliseconds a step:\n"
                              "rank  input  forward  backward  waiting  reducing  updating  other  total\n"
                              "   0   0.25    10.00     20.00    20.00      1.00      0.50   0.25  52.00\n"
                              "   1   0.25    10.00     20.00    20.00      1.00      0.50   0.25  52.00\n"
                              "   2   0.25    10.00     40.00     0.00      1.00      0.50   0.25  52.00\n"
                              "in % of its time:\n"
                              "rank  input  forward  backward  waiting  reducing  updating  other\n"
                              "   0    0.5     19.2      38.5     38.5       1.9       1.0    0.5\n"
                              "   1    0.5     19.2      38.5     38.5       1.9       1.0    0.5\n"
                              "   2    0.5     19.2      76.9      0.0       1.9       1.0    0.5\n");
    all[2] = per_step(STEPS, idle);
    all[2].steps = 0; /* a server without an update */
    t.workers = 2;
    take_table(&t, 80, text, sizeof text);
    assert_non_null(strstr(text, "   2   0.00     0.00      0.00     0.00"));
    assert_non_null(strstr(text, "rank 2 is a server: waiting is being idle, a step is an update\n"));
}

/* All phases, and times of any size, within a terminal of 80 columns. */
static void test_width(void **state)
{
    static const double long_ones[] = { 1, 12345.67, 23456.78, 1, 1, 1, 12345.67, 1 };
    struct phase_times all[RANKS] = { per_step(STEPS, long_ones), per_step(STEPS, slow), per_step(STEPS, slow) };
    const struct rank_times t = { all, RANKS, RANKS, 1, NULL };
    char text[4096];

    (void)state;
    take_table(&t, 80, text, sizeof text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80);
    assert_null(strstr(text, "total"));
    assert_non_null(strstr(text, "12345.67"));
    take_table(&t, 100, text, sizeof text);
    assert_non_null(strstr(text, "total"));
}

/* Of many ranks those that waited least; the slow one is among them wherever it is. */
static void test_many(void **state)
{
    enum { MANY = 200 };
    static struct phase_times all[MANY];
    const struct rank_times t = { all, MANY, MANY, 1, NULL };
    char text[8192];
    int lines = 0;

    (void)state;
    for (int r = 0; r < MANY; r++)
        all[r] = per_step(STEPS, r == 150 ? slow : fast);
    take_table(&t, 80, text, sizeof text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        lines++;
    assert_int_equal(lines, 2 * (2 + TIME_REPORT_RANKS) + 1);
    assert_non_null(strstr(text, "\n 150 "));
    assert_non_null(strstr(text, "these 16 of 200 ranks waited least; --json has all\n"));
}

static void assert_sentence(const struct rank_times *t, const char *wanted)
{
    struct buffer b = BUFFER_EMPTY;

    assert_int_equal(time_report_straggler(&b, t), wanted != NULL);
    assert_string_equal(buffer_text(&b), wanted ? wanted : "");
    buffer_release(&b);
}

static void test_sentence(void **state)
{
    struct process places[RANKS] = { { .host = "a" }, { .host = "a" }, { .host = "b" } };
    struct phase_times all[RANKS] = { per_step(STEPS, fast), per_step(STEPS, fast), per_step(STEPS, slow) };
    struct rank_times t = { all, RANKS, RANKS, 1, places };

    (void)state;
    assert_sentence(&t, "rank 2 on host b was 1.6 times slower than the others, mostly in backward; waiting for it "
                        "cost 38 % of the time");
    all[1] = per_step(TIME_REPORT_STEPS - 1, fast); /* too few steps */
    assert_sentence(&t, NULL);
    for (int r = 0; r < RANKS; r++) /* too short */
        all[r] = per_step(STEPS, r == 2 ? slow : fast), all[r].steps *= 200;
    assert_sentence(&t, "rank 2 on host b was 1.6 times slower than the others, mostly in backward; waiting for it "
                        "cost 38 % of the time");
    for (int r = 0; r < RANKS; r++)
        for (int p = 0; p < PHASE_COUNT; p++)
            all[r].nanoseconds[p] /= 200;
    assert_sentence(&t, NULL);
    for (int r = 0; r < RANKS; r++)
        all[r] = per_step(STEPS, fast);
    assert_sentence(&t, NULL);
    /* A server that is never idle, and workers that wait for it; not if one of these is slow, or does not wait. */
    t.workers = 2;
    all[2] = per_step(STEPS, busy);
    assert_sentence(&t, "rank 2 on host b, a server, was busy 98 % of the time, and every worker waited for at least "
                        "38 %");
    all[2] = per_step(STEPS, idle);
    assert_sentence(&t, NULL);
    all[2] = per_step(STEPS, busy);
    all[0] = per_step(STEPS, slow);
    assert_sentence(&t, "rank 0 on host a was 1.6 times slower than the others, mostly in backward; waiting for it "
                        "cost 38 % of the time");
    all[1] = per_step(STEPS, slow);
    assert_sentence(&t, NULL);
}

static void test_json(void **state)
{
    struct process places[] = { { .host = "a" }, { .host = "\"b" } };
    struct phase_times all[] = { per_step(200, fast), per_step(200, slow) };
    struct rank_times t = { all, 2, 2, 1, places };
    struct buffer b = BUFFER_EMPTY;

    (void)state;
    time_report_json(&b, &t);
    assert_string_equal(
        buffer_text(&b),
        "\"time\": [{\"rank\": 0, \"host\": \"a\", \"server\": false, \"steps\": 200, \"seconds\": 10.4, \"input\": "
        "0.05, \"forward\": 2.0, \"backward\": 4.0, \"waiting\": 4.0, \"reducing\": 0.2, \"updating\": 0.1, "
        "\"saving\": 0.0, \"other\": 0.05}, {\"rank\": 1, \"host\": \"\\\"b\", \"server\": false, \"steps\": 200, "
        "\"seconds\": 10.4, \"input\": 0.05, \"forward\": 2.0, \"backward\": 8.0, \"waiting\": 0.0, \"reducing\": 0.2, "
        "\"updating\": 0.1, \"saving\": 0.0, \"other\": 0.05}], \"straggler\": {\"rank\": 1, \"ratio\": 1.625, "
        "\"cost\": "
        "0.38461538461538464, \"phase\": \"backward\"}");
    buffer_clear(&b);
    all[1] = all[0];
    t.workers = 1;
    t.ranks = 0;
    time_report_json(&b, &t);
    assert_string_equal(buffer_text(&b), "\"time\": [], \"straggler\": null");
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_width), cmocka_unit_test(test_many),
        cmocka_unit_test(test_sentence), cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
