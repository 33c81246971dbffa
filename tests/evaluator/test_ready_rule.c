/* Rules of readiness: how they combine, where a marker is looked for, and when its bytes are whole. */
#include "evaluator/watch/checkpoint_source.h"

#include "tests/check.h"

#include <string.h>

static void test_together(void **state)
{
    static const struct {
        const char *texts[3];
        int rename, markers;
        double quiet;
    } cases[] = {
        { { NULL }, 0, 0, READY_QUIET_SECONDS },
        { { "rename" }, 1, 0, 0 },
        { { "quiet:0" }, 0, 0, 0 },
        { { "quiet:2.5" }, 0, 0, 2.5 },
        { { "marker:DONE" }, 0, 1, 0 },
        { { "marker:DONE", "quiet:2" }, 0, 1, 2 },
        { { "quiet:2", "marker:DONE", "marker:{name}.ok" }, 0, 2, 2 },
        { { "rename", "quiet:1" }, 1, 0, 1 },
        { { "latest:last" }, 0, 0, 0 },
    };
    struct ready_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count = 0;

        while (count < 3 && cases[i].texts[count])
            count++;
        assert_int_equal(ready_rule_parse(&r, cases[i].texts, count, NULL), OK);
        assert_int_equal(r.rename, cases[i].rename);
        assert_int_equal(r.marker_count, cases[i].markers);
        assert_true(r.quiet_seconds == cases[i].quiet);
    }
}

static void test_wrong(void **state)
{
    static const char *const wrong[] = { "",         "now",     "marker:",   "latest:",    "quiet:",
                                         "quiet:-1", "quiet:x", "quiet:nan", "quiet:1e10", "Rename" };
    static const char *const twice[] = { "quiet:1", "rename", "quiet:2" }, *const latest[] = { "latest:a", "latest:b" };
    const char *many[READY_MARKERS_MAX + 1];
    struct error e = { 0 };
    struct ready_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(ready_rule_parse(&r, &wrong[i], 1, NULL), ERR_ARG);
    assert_int_equal(ready_rule_parse(&r, twice, 3, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "given twice"));
    assert_int_equal(ready_rule_parse(&r, latest, 2, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "latest:FILE is given twice"));
    for (size_t i = 0; i <= READY_MARKERS_MAX; i++)
        many[i] = "marker:x";
    assert_int_equal(ready_rule_parse(&r, many, READY_MARKERS_MAX, NULL), OK);
    assert_int_equal(ready_rule_parse(&r, many, READY_MARKERS_MAX + 1, NULL), ERR_ARG);
}

/* The name alone says it where nothing else is asked for. */
static void test_by_name(void **state)
{
    static const struct {
        const char *texts[2];
        int by_name;
    } cases[] = {
        { { "rename", NULL }, 1 },       { { "quiet:0", NULL }, 0 },       { { "rename", "marker:x" }, 0 },
        { { "rename", "latest:x" }, 0 }, { { "rename", "quiet:0.1" }, 0 }, { { "rename", "quiet:0" }, 1 },
    };
    struct ready_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ready_rule_parse(&r, cases[i].texts, cases[i].texts[1] ? 2 : 1, NULL), OK);
        assert_int_equal(ready_rule_by_name(&r), cases[i].by_name);
    }
}

static void test_marker_paths(void **state)
{
    static const struct {
        const char *marker;
        int is_directory;
        const char *path;
    } cases[] = {
        { "DONE", 1, "c-5/DONE" },  { ".metadata", 1, "c-5/.metadata" },       { "DONE", 0, "c-5.DONE" },
        { ".done", 0, "c-5.done" }, { "done/{name}-{step}", 0, "done/c-5-5" }, { "{step}/{other}", 1, "5/{other}" },
    };
    char path[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ready_rule_marker_path(cases[i].marker, "c-5", 5, cases[i].is_directory, path, sizeof path),
                         1);
        assert_string_equal(path, cases[i].path);
    }
    assert_int_equal(ready_rule_marker_path("0123456789", "c-5", 5, 1, path, 14), 0);
    assert_int_equal(ready_rule_marker_path("{name}456789", "c-5", 5, 1, path, 8), 0);
}

/* What a latest file names: DeepSpeed's the directory, Megatron's the number or "release". */
static void test_latest(void **state)
{
    static const struct {
        const char *pattern, *text;
        int64_t number;
    } cases[] = {
        /* number -1: none */
        { "global_step{step}/", "global_step500", 500 },
        { "global_step{step}/", "global_step500\n", 500 },
        { "global_step{step}/", "/data/run/global_step500/", 500 },
        { "iter_{step}/", "500", 500 },
        { "iter_{step}/", " 0000500 \n", 500 },
        { "iter_{step}/", "release\n", -1 },
        { "iter_{step}/", "-5", -1 },
        { "iter_{step}/", "", -1 },
        { "iter_{step}/", "500 600", -1 },
        { "iter_{step}/", "iter_", -1 },
        { "{step}/", "700", 700 },
    };
    char longest[PATTERN_TEXT_MAX + 1];
    struct pattern any;
    int64_t found;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern p;
        int64_t number = -1;

        assert_int_equal(pattern_parse(cases[i].pattern, 1, &p, NULL), OK);
        if (ready_rule_latest(&p, cases[i].text, strlen(cases[i].text), &number) != (cases[i].number >= 0) ||
            (cases[i].number >= 0 && number != cases[i].number))
            fail_msg("%s on '%s': %lld", cases[i].pattern, cases[i].text, (long long)number);
    }
    assert_int_equal(pattern_parse("{step}/", 1, &any, NULL), OK);
    assert_int_equal(ready_rule_latest(&any, "7", 2, &found), 0); /* bytes of no text: a NUL at the end, */
    assert_int_equal(ready_rule_latest(&any,
                                       "\0"
                                       "7",
                                       2, &found),
                     0);
    assert_int_equal(ready_rule_latest(&any,
                                       "7\0"
                                       "7",
                                       3, &found),
                     0);
    memset(longest, '0', sizeof longest); /* and longer than a name */
    assert_int_equal(ready_rule_latest(&any, longest, sizeof longest - 1, &found), 0);
    longest[PATTERN_TEXT_MAX - 19] = '/';
    assert_int_equal(ready_rule_latest(&any, longest, sizeof longest - 2, &found), 1);
}

static void test_whole(void **state)
{
    static const struct {
        const char *path, *text;
        int code;
    } cases[] = {
        { "c-5/DONE", "", OK },
        { "c-5/DONE", "[12:00] done", OK }, /* a line of a log is no JSON */
        { "c-5/DONE", "500\n", OK },
        { "c-5/DONE", "{\"step\": 5}\n", OK },
        { "c-5/DONE", " \n{\"step\": ", ERR_CORRUPT },
        { "done", "{", ERR_CORRUPT },
        { "ok", "{", ERR_CORRUPT },
        { "ok", " \t\r\n", OK },
        { "c-5/state.json", "", ERR_CORRUPT },
        { "c-5/state.JSON", "[1, 2", ERR_CORRUPT },
        { "c-5/state.json", "[1, 2]", OK },
        { "c-5/state.json", "5", OK },
        { "c-5/state.json", "{\"loss\": NaN, \"worst\": -Infinity}", OK }, /* as Python writes them */
        { "c-5/state.json", "{\"loss\": NaN", ERR_CORRUPT },
        { "c-5/state.json", "{\"a\": \"NaN\\\" x\"} x", ERR_CORRUPT },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };

        if (ready_rule_marker_whole(cases[i].path, cases[i].text, strlen(cases[i].text), &e) != cases[i].code)
            fail_msg("%s: '%s': %s", cases[i].path, cases[i].text, e.message);
    }
    assert_int_equal(ready_rule_says_json("DONE", " \0{", 3), 0); /* bytes of no text */
}

/* Wall seconds of today have 2^-22 between two doubles. */
static void test_changed_after(void **state)
{
    const double now = 1.8e9;

    (void)state;
    assert_int_equal(ready_rule_changed_after(now - 100, now), 0);
    assert_int_equal(ready_rule_changed_after(now, now), 0);
    assert_int_equal(ready_rule_changed_after(now + READY_TICK_SECONDS, now), 0);
    assert_int_equal(ready_rule_changed_after(now + 2 * READY_TICK_SECONDS, now), 1);
    assert_int_equal(ready_rule_changed_after(now + READY_MARKER_SECONDS, now), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together),      cmocka_unit_test(test_wrong),  cmocka_unit_test(test_marker_paths),
        cmocka_unit_test(test_whole),         cmocka_unit_test(test_latest), cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_changed_after),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
