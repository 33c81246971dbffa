/* Which failures of a command count as the same, one after the other. */
#include "evaluator/record/ledger.h"

#include "tests/check.h"

#include <stdio.h>

static size_t note(struct same_failures *s, enum ledger_status status, const char *reason)
{
    struct ledger_record r = { .status = status, .has_metrics = status == LEDGER_DONE, .command = 1 };

    snprintf(r.reason, sizeof r.reason, "%s", reason);
    same_failures_note(s, &r);
    return s->count;
}

static void test_same(void **state)
{
    static const char *const same[][2] = {
        { "the command ended with exit status 1: KeyError: 'm'; see e/logs/1-a.log",
          "the command ended with exit status 1: KeyError: 'm'; see e/logs/2-a.log" },
        { "the command ended with exit status 1: no /c/model-100.pt", "the command ended with exit status 1: no "
                                                                      "/c/model-2000.pt" },
        { "the command ended with exit status 3", "the command ended with exit status 3" },
        { "the command was ended by signal 9 (Killed): epoch one; see x",
          "the command was ended by signal 9 (Killed)" },
        { "the command ran longer than the 3 s of --exec-timeout and was ended", "the command ran longer than the 3 s "
                                                                                 "of --exec-timeout and was ended; "
                                                                                 "see x" },
        { "no metric in its output (1 line, the last 'a'); print", "no metric in its output (2 lines, the last 'b'); "
                                                                   "print" },
        { "no metric in its output: '0.1' is a number", "no metric in its output: '0.2' is a number" },
        { "cannot run 'x': No such file or directory", "cannot run 'x': No such file or directory" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct same_failures s = { 0 };

        assert_int_equal(note(&s, LEDGER_FAILED, same[i][0]), 1);
        assert_int_equal(note(&s, LEDGER_FAILED, same[i][1]), 2);
    }
}

static void test_different(void **state)
{
    static const char *const different[] = {
        "the command ended with exit status 1",
        "the command ended with exit status 2",
        "the command ended with exit status 1: bad weights",
        "the command ended with exit status 1: bad data",
        "the command was ended by signal 9 (Killed)",
        "the command was ended by signal 11 (Segmentation fault)",
        "no metric in its output (0 lines)",
        "the metric 'loss' is named twice",
    };
    const size_t count = sizeof different / sizeof *different;

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            struct same_failures s = { 0 };

            note(&s, LEDGER_FAILED, different[i]);
            assert_int_equal(note(&s, LEDGER_FAILED, different[k]), i == k ? 2 : 1);
        }
}

/* A score ends the row; what was deleted, left untried or is not the command's does not belong to it. */
static void test_between(void **state)
{
    const struct ledger_record incomplete = { .status = LEDGER_FAILED, .reason = "incomplete" };
    struct same_failures s = { 0 };

    (void)state;
    note(&s, LEDGER_FAILED, "exit status 1");
    note(&s, LEDGER_GONE, "deleted");
    note(&s, LEDGER_UNTRIED, "left");
    same_failures_note(&s, &incomplete);
    assert_int_equal(note(&s, LEDGER_FAILED, "exit status 1"), 2);
    assert_int_equal(note(&s, LEDGER_DONE, ""), 0);
    assert_int_equal(note(&s, LEDGER_FAILED, "exit status 1"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_different),
        cmocka_unit_test(test_between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
