/* NAME=DIR: what is taken, and what is refused. */
#include "evaluator/evaluation_set.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *line;
    int rc;
    const char *name, *directory;
} cases[] = {
    { "a=b", 1, "a", "b" },
    { " \ta/b=/c d/e=f \r", 1, "a/b", "/c d/e=f" },
    { "..a=b", 1, "..a", "b" },
    { "a..=..", 1, "a..", ".." },
    { "", 0, NULL, NULL },
    { " \t\r", 0, NULL, NULL },
    { "  # a=b", 0, NULL, NULL },
    { "a", ERR_ARG, NULL, NULL },
    { "a=", ERR_ARG, NULL, NULL },
    { "=b", ERR_ARG, NULL, NULL },
    { "/a=b", ERR_ARG, NULL, NULL },
    { "a/=b", ERR_ARG, NULL, NULL },
    { "a//b=c", ERR_ARG, NULL, NULL },
    { ".=b", ERR_ARG, NULL, NULL },
    { "a/../b=c", ERR_ARG, NULL, NULL },
    { "a/..=c", ERR_ARG, NULL, NULL },
    { "../a=c", ERR_ARG, NULL, NULL },
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[64], *name, *directory;
        struct error e = { 0 };

        snprintf(line, sizeof line, "%s", cases[i].line);
        assert_int_equal(watch_pair_parse(line, &name, &directory, &e), cases[i].rc);
        if (cases[i].rc == 1) {
            assert_string_equal(name, cases[i].name);
            assert_string_equal(directory, cases[i].directory);
        } else {
            assert_int_equal(*e.message != 0, cases[i].rc < 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
