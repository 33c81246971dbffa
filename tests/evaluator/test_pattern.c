/* Names with a step in them: a table of patterns and names, wrong patterns, and one that must not take for ever. */
#include "evaluator/watch/checkpoint_source.h"

#include "tests/check.h"

#include <string.h>

static const struct {
    const char *pattern, *name;
    int64_t step;
} cases[] = {
    /* step -1: the name does not fit */
    { "checkpoint-{step}", "checkpoint-500", 500 },
    { "checkpoint-{step}", "checkpoint-", -1 },
    { "checkpoint-{step}", "checkpoint-5x", -1 },
    { "checkpoint-{step}", "xcheckpoint-5", -1 },
    { "checkpoint-{step}", "tmp-checkpoint-5", -1 },
    { "checkpoint-{step}/", "checkpoint-500", 500 },
    { "epoch={*}-step={step}.ckpt", "epoch=12-step=007.ckpt", 7 },
    { "epoch={}-step={step}.ckpt", "epoch=-step=0.ckpt", 0 },
    { "epoch={}-step={step}.ckpt", "epoch=1-step=7.ckpt.tmp", -1 },
    { "epoch={}-step={step}{}.ckpt", "epoch=1-step=7-val=0.5.ckpt", 7 },
    { "iter_{step}", "iter_0001000", 1000 },
    { "model_{step}.pt", "model_123456789012345678.pt", 123456789012345678 },
    { "model_{step}.pt", "model_1234567890123456789.pt", -1 }, /* over 18 digits */
    { "model_{step}.pt", "model_-5.pt", -1 },
    { "{step}", "42", 42 },
    { "{step}", "", -1 },
    { "{*}{step}.pt", "model123.pt", 123 },           /* never 3, or 23 */
    { "{*}{step}.pt", "1234567890123456789.pt", -1 }, /* nor all but the first of too many */
    { "{step}{*}", "1234567890123456789", -1 },
    { "{step}{*}", "12ab34", 12 },
    { "{*}-{step}{*}", "a-5-10.pt", 5 }, /* the earliest place */
    { "{*}-{step}.pt", "a-5-10.pt", 10 },
    { "v2{step}.pt", "v2100.pt", 100 }, /* what the text says is text */
    { "{*}{*}{}x{step}", "yxx1", 1 },
    { "a{*}b{step}", "ab1", 1 },
    { "rank\xc3\xa4_{step}", "rank\xc3\xa4_3", 3 },
};

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pattern p;
        int64_t step = -1;

        assert_int_equal(pattern_parse(cases[i].pattern, 1, &p, NULL), OK);
        assert_int_equal(p.directory, strchr(cases[i].pattern, '/') != NULL);
        if (pattern_match(&p, cases[i].name, &step) != (cases[i].step >= 0) || step != cases[i].step)
            fail_msg("%s on %s: %lld", cases[i].pattern, cases[i].name, (long long)step);
    }
}

static void test_wrong(void **state)
{
    static const struct {
        const char *pattern, *word;
    } wrong[] = {
        { "model.pt", "--step-from count" },
        { "{step}-{step}", "2 times" },
        { "a/b-{step}", "'/'" },
        { "{stp}", "byte 0" },
        { "x{step", "byte 1" },
        { "{step}0.pt", "digit" },
        { "", "{step}" },
        { "/", "{step}" },
        { "a{step}{", "byte 7" },
    };
    char longest[400], *end = longest;
    struct error e = { 0 };
    struct pattern p;
    int64_t step;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(pattern_parse(wrong[i].pattern, 1, &p, &e), ERR_ARG);
        if (!strstr(e.message, wrong[i].word))
            fail_msg("%s: no '%s' in: %s", wrong[i].pattern, wrong[i].word, e.message);
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest + 392, "{step}", 7);
    assert_int_equal(pattern_parse(longest, 1, &p, NULL), ERR_ARG);
    for (int i = 0; i < PATTERN_PARTS_MAX / 2; i++)
        end = stpcpy(end, "{*}a");
    assert_int_equal(pattern_parse("{*}{}a{}{*}{*}", 0, &p, NULL), OK);
    assert_int_equal(p.count, 3); /* what stands side by side is one */
    strcpy(end - 4, "{*}a{*}");
    assert_int_equal(pattern_parse(longest, 0, &p, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "more than 32 parts"));
    strcpy(end - 4, "{*}a");
    assert_int_equal(pattern_parse(longest, 0, &p, NULL), OK);
    assert_int_equal(p.count, PATTERN_PARTS_MAX);
    memset(longest, 'x', 256);
    longest[256] = '\0';
    assert_int_equal(pattern_parse("{*}", 0, &p, NULL), OK);
    assert_int_equal(pattern_match(&p, longest, &step), 0); /* no name is as long */
    assert_int_equal(pattern_match(&p, longest + 1, &step), 1);
}

/* Names without a step, where it is found elsewhere. */
static void test_without_step(void **state)
{
    static const struct {
        const char *pattern, *name;
        int fits;
    } names[] = {
        { "last.ckpt", "last.ckpt", 1 }, { "last.ckpt", "last.ckpt.tmp", 0 },  { "last{*}.ckpt", "last-v1.ckpt", 1 },
        { "final/", "final", 1 },        { "{*}.h5", "latest.weights.h5", 1 }, { "{*}.h5", "latest.weights.h5x", 0 },
    };
    struct error e = { 0 };
    struct pattern p;
    int64_t step = 5;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(pattern_parse(names[i].pattern, 0, &p, NULL), OK);
        assert_int_equal(pattern_match(&p, names[i].name, &step), names[i].fits);
        assert_true(!names[i].fits || step == -1);
    }
    assert_int_equal(pattern_parse("model_{step}.pt", 0, &p, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "--step-from"));
    assert_int_equal(pattern_parse("", 0, &p, NULL), ERR_ARG);
    assert_int_equal(pattern_parse("/", 0, &p, NULL), ERR_ARG);
}

/* Fifteen gaps on a name that almost fits: tried naively, longer than anybody lives. */
static void test_many_gaps(void **state)
{
    char text[256] = "", name[256];
    struct pattern p;
    int64_t step;

    (void)state;
    for (int i = 0; i < 15; i++)
        strcat(text, "{*}a");
    strcat(text, "b{step}");
    assert_int_equal(pattern_parse(text, 1, &p, NULL), OK);
    memset(name, 'a', 250);
    strcpy(name + 250, "c1");
    assert_int_equal(pattern_match(&p, name, &step), 0);
    strcpy(name + 250, "b1");
    assert_int_equal(pattern_match(&p, name, &step), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_many_gaps),
        cmocka_unit_test(test_without_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
