/* Steps from elsewhere than the name: what FROM may be, the number in a JSON file, scale and offset. */
#include "evaluator/watch/checkpoint_source.h"

#include "tests/check.h"

#include <string.h>

static void test_from(void **state)
{
    static const char *const wrong[] = { "", "counts", "state.json", ":step", "state.json:", "step" };
    char from[sizeof((struct step_rule *)0)->file + sizeof ":step"];
    struct step_rule r;

    (void)state;
    assert_int_equal(step_rule_parse(&r, NULL, 0, 0, NULL), OK);
    assert_true(r.from == STEP_FROM_NAME && !r.scaled);
    assert_int_equal(step_rule_parse(&r, "count", 0, 0, NULL), OK);
    assert_int_equal(r.from, STEP_FROM_COUNT);
    assert_int_equal(step_rule_parse(&r, "mtime", 0, 0, NULL), OK);
    assert_int_equal(r.from, STEP_FROM_MTIME);
    assert_int_equal(step_rule_parse(&r, "a:b/state.json:trainer.step", 0, 0, NULL), OK);
    assert_int_equal(r.from, STEP_FROM_FILE);
    assert_string_equal(r.file, "a:b/state.json");
    assert_string_equal(r.key, "trainer.step");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(step_rule_parse(&r, wrong[i], 0, 0, NULL), ERR_ARG);
    memset(from, 'f', sizeof from);
    strcpy(from + sizeof r.file, ":step");
    assert_int_equal(step_rule_parse(&r, from, 0, 0, NULL), ERR_ARG);
    assert_int_equal(step_rule_parse(&r, from + 1, 0, 0, NULL), OK);
    assert_int_equal(strlen(r.file), sizeof r.file - 1);
}

static void test_scale(void **state)
{
    static const struct {
        int64_t scale, offset, number, step;
    } cases[] = {
        { 0, 0, 7, 7 },
        { 0, 0, -1, -1 },
        { 391, 0, 3, 1173 },
        { 391, 391, 0, 391 },
        { 1, -7, 7, 0 },
        { 1, -7, 6, -1 },
        { 1000000000000, 0, 10000000, -1 },
        { 1, 1, INT64_MAX, -1 },
        { 0, 5, 7, 12 },
        { 1, 5, -1, -1 },
        { 1, -9, 6, -1 },
        { 4, 0, ((int64_t)1 << 62) + 1, -1 },
    };
    struct step_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(step_rule_parse(&r, NULL, cases[i].scale, cases[i].offset, NULL), OK);
        assert_int_equal(r.scaled, cases[i].scale || cases[i].offset);
        assert_int_equal(step_rule_step(&r, cases[i].number), cases[i].step);
        assert_true(cases[i].step < 0 || step_rule_number(&r, cases[i].step) == cases[i].number);
    }
    assert_int_equal(step_rule_parse(&r, NULL, 10, 5, NULL), OK);
    assert_int_equal(step_rule_number(&r, 4), -1);
    assert_int_equal(step_rule_number(&r, 29), 2); /* of another scale: rounded down */
    assert_int_equal(step_rule_number(&r, -1), -1);
    assert_int_equal(step_rule_parse(&r, NULL, 1, -7, NULL), OK);
    assert_int_equal(step_rule_number(&r, INT64_MAX), -1);
    assert_int_equal(step_rule_number(&r, -1), -1);
}

static void test_paths(void **state)
{
    static const struct {
        const char *from, *path;
        int is_directory;
    } cases[] = {
        { "state.json:step", "state.json", 0 },       { "state.json:step", "last/state.json", 1 },
        { "{name}.json:step", "last.json", 0 },       { "meta/{name}.json:step", "meta/last.json", 1 },
        { "../state.json:step", "../state.json", 0 },
    };
    char path[64];
    struct step_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(step_rule_parse(&r, cases[i].from, 0, 0, NULL), OK);
        assert_int_equal(step_rule_path(&r, "last", cases[i].is_directory, path, sizeof path), 1);
        assert_string_equal(path, cases[i].path);
    }
    assert_int_equal(step_rule_path(&r, "last", 0, path, 4), 0);
}

static void test_find(void **state)
{
    static const struct {
        const char *key, *text;
        int64_t number;
        int cut;
    } cases[] = {
        /* number -1: an error */
        { "step", "{\"step\": 500}", 500, 0 },
        { "step", "{\"loss\": NaN, \"step\": 500.0}", 500, 0 },
        { "trainer.step", "{\"trainer\": {\"step\": 0}}", 0, 0 },
        { "trainer.step", "{\"trainer.step\": 5, \"trainer\": {\"step\": 6}}", 5, 0 },
        { "a.b.c", "{\"a.b\": {\"c\": 8}, \"a\": {}}", 8, 0 },
        { "a.b", "{\"a\": 5}", -1, 0 },
        { "step", "{\"steps\": 500}", -1, 0 },
        { "step", "{\"step\": \"500\"}", -1, 0 },
        { "step", "{\"step\": -1}", -1, 0 },
        { "step", "{\"step\": 0.5}", -1, 0 },
        { "step", "{\"step\": NaN}", -1, 0 },
        { "step", "{\"step\": 1e300}", -1, 0 },
        { "step", "{\"step\": 9007199254740993}", -1, 0 },
        { "step", "{\"step\": 8999999999999999}", 8999999999999999, 0 },
        { "step", "{\"step\": 5", -1, 1 },
        { "step", "[5]", -1, 0 },
        { "step", "", -1, 1 },
    };
    char from[64] = "f:";
    struct step_rule r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        int64_t number = -1;
        int rc;

        strcpy(from + 2, cases[i].key);
        assert_int_equal(step_rule_parse(&r, from, 0, 0, NULL), OK);
        rc = step_rule_find(&r, "ckpt/state.json", cases[i].text, strlen(cases[i].text), &number, &e);
        if (number != cases[i].number || (rc == OK) != (number >= 0))
            fail_msg("%s of %s: %lld, %s", cases[i].key, cases[i].text, (long long)number, e.message);
        assert_true(rc == OK || strstr(e.message, "ckpt/state.json"));
        assert_int_equal(strstr(e.message, "not complete JSON") != NULL, cases[i].cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
