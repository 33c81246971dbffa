/* A command line without some of its options: their words go, with their values, and no others. */
#include "base/program/options.h"

#include "tests/check.h"

#include <string.h>

static int parsed_flag, kept_flag;
static int64_t number, retries;
static const char *text, *other;

static struct option table[] = {
    { OPTION_HEADING, .help = "All:" },
    { OPTION_TEXT, .name = "hosts", .letter = 'o', .value = &text, .argument = "FILE", .help = "" },
    { OPTION_FLAG, .name = "dry-run", .letter = 'd', .value = &parsed_flag, .help = "" },
    { OPTION_INT, .name = "restarts", .value = &number, .argument = "N", .help = "" },
    { OPTION_COUNT, .name = "retry", .value = &retries, .argument = "N", .help = "" },
    { OPTION_TEXT, .name = "model", .value = &other, .argument = "NAME", .help = "" },
    { OPTION_FLAG, .name = "quiet", .letter = 'q', .value = &kept_flag, .help = "" },
};
static const char *const removed[] = { "hosts", "dry-run", "restarts", "retry" };

/* The words after the program's name, with a blank after each. */
static void leaves(const char *line, const char *wanted)
{
    const struct options o = { .program = "p", .table = table, .count = sizeof table / sizeof *table };
    char words[512] = "p ", found[512] = "", *argv[32], *rest = words;
    struct error e = { 0 };
    int argc = 0, positional;

    strcat(words, line);
    while ((argv[argc] = strtok_r(rest, " ", &rest)))
        argc++;
    if (options_parse(&o, argc, argv, &positional, &e) != OPTIONS_RUN)
        fail_msg("%s: %s", line, e.message);
    argc = options_remove(&o, argc, argv, removed, sizeof removed / sizeof *removed);
    assert_null(argv[argc]);
    for (int i = 1; i < argc; i++)
        strcat(strcat(found, argv[i]), " ");
    assert_string_equal(found, wanted);
}

static void test_removed(void **state)
{
    (void)state;
    leaves("", "");
    leaves("--model a -q", "--model a -q ");
    leaves("--hosts f --model a", "--model a ");
    leaves("--model a --hosts=f", "--model a ");
    leaves("-o f -of -q -d", "-q ");
    leaves("--dry-run --model a --no-dry-run", "--model a ");
    leaves("--restarts 3 --quiet --restarts=4 --no-quiet", "--quiet --no-quiet ");
    leaves("--retry --model a --retry 3 -q --retry=4 --no-retry", "--model a -q ");
}

/* Values that look like options, and the other way round. */
static void test_values(void **state)
{
    (void)state;
    leaves("--model --dry-run --dry-run", "--model --dry-run ");
    leaves("--model --hosts -q", "--model --hosts -q ");
    leaves("--hosts --model --model --hosts", "--model --hosts ");
    leaves("--hosts -- --model=--", "--model=-- ");
    leaves("-ohosts --model a", "--model a ");
    leaves("-q --", "-q -- ");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_removed), cmocka_unit_test(test_values) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
