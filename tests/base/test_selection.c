/* Names asked for by patterns, and what is said of a pattern that matches nothing. */

#include "base/program/selection.h"
#include "base/text.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_distance(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        { "", "", 0 },         { "", "abc", 3 },
        { "abc", "abc", 0 },   { "kitten", "sitting", 3 },
        { "flaw", "lawn", 2 }, { "precison", "precision", 1 },
    };
    char longer[TEXT_DISTANCE_MOST + 2];

    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(text_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(text_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
    assert_int_equal(text_distance(longer, longer), TEXT_DISTANCE_MOST);
    assert_int_equal(text_distance(longer + 1, longer + 1), 0);
}

/* What is written about a selection; how many patterns matched nothing. */
static size_t told(struct selection *s, char *text, size_t room)
{
    int pipes[2];
    struct log log;
    size_t unmatched;
    ssize_t n;

    assert_int_equal(pipe(pipes), 0);
    log_init(&log, "eventlog stats", pipes[1]);
    unmatched = selection_tell(s, "--tag", "tag", &log);
    close(pipes[1]);
    n = read(pipes[0], text, room - 1);
    text[n < 0 ? 0 : n] = '\0';
    close(pipes[0]);
    return unmatched;
}

static void test_all(void **state)
{
    struct selection s = { .names = 0 };
    char text[512];

    (void)state;
    assert_int_equal(selection_wants(&s, "anything"), 1);
    assert_int_equal(told(&s, text, sizeof text), 0);
    assert_string_equal(text, "");
    selection_release(&s);
}

static void test_patterns(void **state)
{
    static const char *const names[] = { "learning_rate", "loss", "eval/precision", "loss", "eval/loss", "a\nb" };
    struct selection s = { .patterns = { { "los", "*precision", "A\nB?", "zzzzzzzzzzzzzz" }, 4 } };
    char text[512];

    (void)state;
    assert_int_equal(told(&s, text, sizeof text), 4);
    assert_non_null(strstr(text, "eventlog stats: --tag 'los': no tag matches; there is none\n"));
    selection_release(&s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(selection_wants(&s, names[i]), i == 2);
    assert_int_equal(told(&s, text, sizeof text), 3);
    /* Names that hold the letters come first, in order of appearance; what upsets a terminal is escaped. */
    assert_non_null(strstr(text, "--tag 'los': no tag matches; did you mean 'loss', 'eval/loss' or 'a\\x0ab'?\n"));
    assert_non_null(strstr(text, "--tag 'A\\x0aB?': no tag matches; did you mean 'a\\x0ab', 'loss' or"));
    assert_non_null(strstr(text, "--tag 'zzzzzzzzzzzzzz': no tag matches; did you mean '"));
    assert_null(strstr(text, "*precision"));
    assert_int_equal(told(&s, text, sizeof text), 3); /* counted, not told, again */
    assert_string_equal(text, "");
    assert_int_equal(selection_wants(&s, "los"), 1);
    assert_int_equal(told(&s, text, sizeof text), 2);
    selection_release(&s);
}

/* Names instead of patterns: the second half of the text. */
static int is_second(const void *context, size_t i, const char *name)
{
    const struct selection *s = context;

    return !strcmp(strchr(s->patterns.items[i], '=') + 1, name);
}

static void test_other_than_patterns(void **state)
{
    struct selection s = { .patterns = { { "a=l*", "b=loss" }, 2 }, .matches = is_second };
    char text[512];

    (void)state;
    s.context = &s;
    assert_int_equal(selection_wants(&s, "loss"), 1);
    assert_int_equal(selection_wants(&s, "lr"), 0);
    assert_int_equal(told(&s, text, sizeof text), 1);
    assert_non_null(strstr(text, "--tag 'a=l*': no tag matches; did you mean"));
    assert_int_equal(selection_wants(&s, "l*"), 1);
    assert_int_equal(told(&s, text, sizeof text), 0);
    selection_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_other_than_patterns),
    };

    return cmocka_run_group_tests_name("selection", tests, NULL, NULL);
}
