/* Which points of several files stay, and in which order: each case is files of points and the points wanted. */
#include "eventlog/rewrite/log_merge.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Files are separated by '|', events by blanks: a tag's letter and its step ("a10"; A: 1000 seconds later), S a session
 * start, G a graph, e an experiment, x a session end. Wall times go up by one from event to event, and by `gap` from
 * file to file. Wanted: places in the input, numbered from 0, in order. */
static const struct {
    const char *name, *files;
    double gap;
    const char *last, *first, *keep;
} cases[] = {
    { "one file", "a0 b0 a1 b1", 0, "0 1 2 3", "0 1 2 3", "0 1 2 3" },
    { "out of order in a file", "a3 a1 a2", 0, "1 2 0", "1 2 0", "1 2 0" },
    { "a step twice in a file", "a1 a1 a2", 0, "1 2", "0 2", "0 1 2" },
    { "goes on", "a0 a1 | a2 a3", 0, "0 1 2 3", "0 1 2 3", "0 1 2 3" },
    { "restart", "a0 a10 a20 a30 | a15 a25 a35", 0, "0 1 4 5 6", "0 1 2 3 6", "0 1 4 2 5 3 6" },
    { "restart at the same step", "a0 a10 | a10 a20", 0, "0 2 3", "0 1 3", "0 1 2 3" },
    { "restart twice", "a0 a10 a20 | a5 a15 | a12 a30", 0, "0 3 5 6", "0 1 2 6", "0 3 1 5 4 2 6" },
    { "a tag that is not logged again", "a0 b5 | a0 a1", 0, "2 3 1", "0 3 1", "0 2 3 1" },
    { "two writers at once", "a0 a2 a4 | a1 a3 a5", -2, "0 3 1 4 2 5", "0 3 1 4 2 5", "0 3 1 4 2 5" },
    { "two writers, equal steps", "a0 a1 a2 | a1 a2 a3", -2, "0 3 4 5", "0 1 2 5", "0 1 3 2 4 5" },
    { "session start", "a0 a1 b1 b2 | S1 a1", 0, "0 4 5", "0 4 1 2 3", "0 4 1 2 5 3" },
    { "session start in the middle", "a0 a1 S1 a1 a2", 0, "0 2 3 4", "0 2 1 4", "0 2 1 3 4" },
    { "marks stand before values", "b1 a1 | S1", 0, "2", "2 0 1", "2 0 1" },
    { "graph once", "G0 a1 | G0 a2", 0, "2 1 3", "2 1 3", "2 1 3" },
    { "hyperparameters once", "e0 x5 | e0 x3", 0, "0 3", "0 3", "0 3" },
    { "steps below zero", "a-5 a3 | a-6", 0, "2", "0 1", "2 0 1" },
};

static void put(struct log_merge *m, const char *word, size_t place, double wall_time)
{
    const char *tag = *word == 'e' ? "_hparams_/experiment" : *word == 'x' ? "_hparams_/session_end_info" : word;
    size_t n = tag == word ? 1 : strlen(tag);
    int64_t step = strtoll(word + 1, NULL, 10);
    int rc;

    if (*word == 'S')
        rc = log_merge_event(m, place, LOG_MERGE_SESSION_START, step, NULL);
    else if (*word == 'G')
        rc = log_merge_event(m, place, LOG_MERGE_GRAPH, step, NULL);
    else
        rc = log_merge_value(m, place, (uint32_t)place, tag, n, step, wall_time, NULL);
    assert_int_equal(rc, OK);
}

/* The places that stay, as text; "error" where the merge is refused. */
static void merged(const char *files, double gap, enum eventlog_overlap overlap, char *out)
{
    const struct log_merge_item *items;
    char text[200], *at = text;
    struct error e = { 0 };
    struct log_merge *m;
    size_t place = 0, count;
    double wall_time = 1e9;

    strcpy(text, files);
    *out = '\0';
    assert_int_equal(log_merge_new(&m, overlap, NULL), OK);
    assert_int_equal(log_merge_file(m, 0, "run", NULL), OK);
    for (char *word; (word = strsep(&at, " "));) {
        if (*word == '|') {
            wall_time += gap;
            assert_int_equal(log_merge_file(m, 0, "run", NULL), OK);
        } else {
            put(m, word, place++, wall_time += 1);
        }
    }
    if (log_merge_finish(m, &e) == OK) {
        items = log_merge_items(m, &count);
        for (size_t i = 0; i < count; i++)
            sprintf(out + strlen(out), i ? " %d" : "%d", (int)items[i].offset);
    } else {
        assert_non_null(strstr(e.message, "more than once"));
        strcpy(out, "error");
    }
    log_merge_free(m);
}

static void test_cases(void **state)
{
    char got[200];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].name);
        merged(cases[i].files, cases[i].gap, EVENTLOG_OVERLAP_LAST, got);
        assert_string_equal(got, cases[i].last);
        merged(cases[i].files, cases[i].gap, EVENTLOG_OVERLAP_FIRST, got);
        assert_string_equal(got, cases[i].first);
        merged(cases[i].files, cases[i].gap, EVENTLOG_OVERLAP_KEEP, got);
        assert_string_equal(got, cases[i].keep);
        merged(cases[i].files, cases[i].gap, EVENTLOG_OVERLAP_ERROR, got);
        /* Refused exactly where something of a series would be left out. */
        assert_string_equal(got, strlen(cases[i].last) < strlen(cases[i].keep) ? "error" : cases[i].keep);
    }
}

static void test_runs_with_the_same_tag(void **state)
{
    struct log_merge *m;
    struct error e = { 0 };
    size_t count;

    (void)state;
    assert_int_equal(log_merge_new(&m, EVENTLOG_OVERLAP_LAST, NULL), OK);
    assert_int_equal(log_merge_file(m, 3, "one", NULL), OK);
    assert_int_equal(log_merge_event(m, 0, LOG_MERGE_SESSION_START, 0, NULL), OK);
    assert_int_equal(log_merge_value(m, 1, 0, "a", 1, 0, 1, NULL), OK);
    assert_int_equal(log_merge_value(m, 2, 0, "_hparams_/experiment", 20, 0, 1, NULL), OK);
    assert_int_equal(log_merge_file(m, 7, "two", NULL), OK);
    assert_int_equal(log_merge_value(m, 0, 0, "b", 1, 0, 2, NULL), OK);
    assert_int_equal(log_merge_run_metadata(m, 0, "a", 1, 0, 2, NULL), OK); /* a name space of its own */
    assert_int_equal(log_merge_value(m, 2, 0, "_hparams_/experiment", 20, 0, 1, NULL), OK);
    assert_int_equal(log_merge_value(m, 1, 0, "a", 1, 0, 2, &e), ERR_ARG);
    assert_string_equal(e.message, "tag 'a' is in the runs 'one' and 'two'");
    assert_int_equal(log_merge_finish(m, NULL), OK);
    log_merge_items(m, &count);
    assert_int_equal(count, 5);
    assert_int_equal(log_merge_totals(m).repeated, 1);
    log_merge_free(m);
}

/* Processor time of a series in so many files, each behind the one before. */
static double seconds_of(int files)
{
    const clock_t begun = clock();
    struct error e = { 0 };
    struct log_merge *m;
    size_t count;

    assert_int_equal(log_merge_new(&m, EVENTLOG_OVERLAP_LAST, &e), OK);
    for (int i = 0; i < files; i++) {
        assert_int_equal(log_merge_file(m, 0, "run", &e), OK);
        assert_int_equal(log_merge_value(m, 0, 0, "loss", 4, i, i, &e), OK);
    }
    assert_int_equal(log_merge_finish(m, &e), OK);
    log_merge_items(m, &count);
    assert_int_equal(count, files);
    log_merge_free(m);
    return (double)(clock() - begun) / CLOCKS_PER_SEC;
}

/* Eight times the files take 8 times as long, not 64 times: no pair of them is looked at. */
static void test_many_files(void **state)
{
    (void)state;
    assert_true(seconds_of(160000) < 24 * (seconds_of(20000) + 0.001));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_runs_with_the_same_tag),
        cmocka_unit_test(test_many_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
