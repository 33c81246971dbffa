/* What the formats of `eventlog export` say they take are options, and those accept them. */
#include "eventlog/tool/export/export_options.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

#define ADDRESS(name) &format_##name,
static const struct export_format *const formats[] = { EXPORT_FORMATS(ADDRESS) };

/* The sentence on `eventlog export LOG --media=D or --format=NAME --OPTION=VALUE`; "" where all is well. */
static const char *say(const struct export_format *f, const char *option, size_t n, const char *value, struct error *e)
{
    char program[] = "export", log[] = "log", format[64], given[64], *argv[] = { program, log, format, given, NULL };
    struct export_options a;
    struct scan s = { .failed = 0 };
    int paths;

    memset(e, 0, sizeof *e);
    snprintf(format, sizeof format, f->help ? "--format=%s" : "--media=%s", f->name);
    snprintf(given, sizeof given, "--%.*s%s%s", (int)n, option, value ? "=" : "", value ? value : "");
    return export_options_parse(&a, &s, 4, argv, &paths, e) == OK ? "" : e->message;
}

static void test_takes(void **state)
{
    struct error e;

    (void)state;
    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++)
        for (const char *word = formats[i]->takes; *word; word += strcspn(word, " "), word += *word == ' ') {
            const size_t n = strcspn(word, " ");
            const char *found = say(formats[i], word, n, NULL, &e);

            if (strstr(found, "unknown option") || strstr(found, "does not apply") || strstr(found, "applies only"))
                fail_msg("%s: %.*s: %s", formats[i]->name, (int)n, word, found);
        }
}

/* Options of one format alone: each has a name no other has, and is refused with another format. */
static void test_own(void **state)
{
    struct error e;

    (void)state;
    for (size_t i = 0; i < EXPORT_FORMAT_COUNT; i++) {
        struct option rows[EXPORT_OWN_ROWS] = { 0 };
        struct export_own own = { { 0 } };
        const size_t n = formats[i]->rows ? formats[i]->rows(rows, &own) : 0;

        assert_true(n <= EXPORT_OWN_ROWS);
        for (size_t k = 0; k < n; k++) {
            const struct export_format *other = formats[i] == &format_csv ? &format_json : &format_csv;
            char want[128];

            assert_memory_equal(rows[k].help, ": ", 2);
            snprintf(want, sizeof want, "--%s does not apply to --format=%s, only to: %s", rows[k].name, other->name,
                     formats[i]->name);
            assert_string_equal(
                say(other, rows[k].name, strlen(rows[k].name), rows[k].kind == OPTION_FLAG ? NULL : "1", &e), want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_takes), cmocka_unit_test(test_own) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
