/* The options of each strategy: those that several have, and those that the chosen one does not have. */
#include "trainer/strategies/strategy_choice.h"

#include "tests/check.h"

#include <string.h>

struct plain_options {
    int64_t servers;
    const char *how;
    int fast;
};

struct other_options {
    double ratio;
    const char *how;
    int64_t servers;
};

/* Two strategies of which both have --servers and --how, at different places, the latter with different defaults. */

static size_t plain_rows(struct option *rows, void *own)
{
    struct plain_options *o = own;

    *o = (struct plain_options){ 1, "here", 0 };
    rows[0] = (struct option){ OPTION_INT, .name = "servers", .value = &o->servers, .minimum = 1, .maximum = 9 };
    rows[1] = (struct option){ OPTION_CHOICE, .name = "how", .value = &o->how, .choices = "here|there" };
    rows[2] = (struct option){ OPTION_FLAG, .name = "fast", .value = &o->fast };
    return 3;
}

static size_t other_rows(struct option *rows, void *own)
{
    struct other_options *o = own;

    *o = (struct other_options){ 0.5, "there", 1 };
    rows[0] = (struct option){ OPTION_DOUBLE, .name = "ratio", .value = &o->ratio, .minimum = 0, .maximum = 1 };
    rows[1] = (struct option){ OPTION_CHOICE, .name = "how", .value = &o->how, .choices = "here|there" };
    rows[2] = (struct option){ OPTION_INT, .name = "servers", .value = &o->servers, .minimum = 1, .maximum = 9 };
    return 3;
}

static void other_resolve(struct strategy_options *o)
{
    o->synchronous = 0;
    strcpy(o->label, "other --async");
}

static const struct strategy_kind bare = { .name = "bare", .help = "alone" };
static const struct strategy_kind plain = { .name = "plain", .help = "in a plain way", .options = plain_rows };
static const struct strategy_kind other = {
    .name = "other", .help = "otherwise", .options = other_rows, .resolve = other_resolve
};
static const struct strategy_kind *const kinds[] = { &bare, &plain, &other, NULL };

enum { WORDS = 6, COUNT = 1 + 4 }; /* --run-option, and each name once */

struct chosen {
    struct strategy_choice choice;
    struct strategy_options options;
    char words[WORDS][32];
};

static int choose(struct chosen *c, const char *const *words, struct error *e)
{
    struct option table[STRATEGY_CHOICE_ROWS];
    struct options parsed = { .program = "trainer", .table = table };
    char program[] = "trainer", *argv[WORDS + 2] = { program };
    int argc = 1, positional;

    strategy_choice_init(&c->choice, kinds);
    parsed.count = strategy_choice_rows(&c->choice, table);
    assert_int_equal(parsed.count, COUNT);
    for (; argc <= WORDS && words[argc - 1]; argc++)
        argv[argc] = strcpy(c->words[argc - 1], words[argc - 1]);
    assert_int_equal(options_parse(&parsed, argc, argv, &positional, e), OPTIONS_RUN);
    return strategy_choice_resolve(&c->choice, &parsed, &c->options, e);
}

static void test_help(void **state)
{
    struct strategy_choice c;

    (void)state;
    strategy_choice_init(&c, kinds);
    assert_string_equal(c.names, "bare|plain|other");
    assert_string_equal(c.help, "Train alone (bare, the default); in a plain way (plain); or otherwise (other).");
}

static void test_values(void **state)
{
    const char *const none[] = { NULL }, *const first[] = { "--run-option=plain", "--servers=3", "--fast", NULL };
    const char *const second[] = { "--run-option=other", "--servers=4", NULL };
    const char *const both[] = { "--run-option=other", "--how=here", "--ratio=0.25", NULL };
    struct chosen c;
    const struct plain_options *p = (const void *)c.options.own.bytes;
    const struct other_options *o = (const void *)c.options.own.bytes;

    (void)state;
    assert_int_equal(choose(&c, none, NULL), OK);
    assert_ptr_equal(c.options.kind, &bare);
    assert_int_equal(c.options.synchronous, 1);
    assert_int_equal(choose(&c, first, NULL), OK);
    assert_ptr_equal(c.options.kind, &plain);
    assert_true(p->servers == 3 && p->fast && !strcmp(p->how, "here"));
    assert_string_equal(c.options.label, "plain");
    assert_int_equal(choose(&c, second, NULL), OK);
    assert_true(o->servers == 4 && o->ratio == 0.5 && !strcmp(o->how, "there")); /* its own default */
    assert_int_equal(c.options.synchronous, 0);
    assert_string_equal(c.options.label, "other --async");
    assert_int_equal(choose(&c, both, NULL), OK);
    assert_true(o->servers == 1 && o->ratio == 0.25 && !strcmp(o->how, "here"));
}

static void test_refused(void **state)
{
    static const struct {
        const char *words[WORDS], *sentence;
    } rows[] = {
        { { "--servers=1" }, "--servers needs --run-option plain or other, not bare" },
        { { "--how=here", "--run-option=bare" }, "--how needs --run-option plain or other, not bare" },
        { { "--run-option=plain", "--ratio=0.5" }, "--ratio needs --run-option other, not plain" },
        { { "--run-option=other", "--no-fast" }, "--fast needs --run-option plain, not other" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error e = { 0 };
        struct chosen c;

        assert_int_equal(choose(&c, rows[i].words, &e), ERR_ARG);
        assert_string_equal(e.message, rows[i].sentence);
    }
}

/* Of values, wherever they are kept, and of nothing else. */
static void test_fingerprint(void **state)
{
    static const struct {
        const char *words[WORDS];
        int alike; /* as the row before */
    } rows[] = {
        { { "--run-option=plain" }, 0 },
        { { "--run-option=plain", "--servers=1" }, 1 },
        { { "--run-option=plain", "--fast" }, 0 },
        { { "--run-option=other" }, 0 },
        { { "--run-option=other", "--how=there" }, 1 },
        { { "--run-option=other", "--how=here" }, 0 },
    };
    uint64_t before = 0;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct chosen c;

        assert_int_equal(choose(&c, rows[i].words, NULL), OK);
        assert_int_equal(c.options.fingerprint == before, rows[i].alike);
        before = c.options.fingerprint;
    }
}

/* Of the real table: one row has the bounds and the words of all strategies that have the option. */
static void test_same_rows(void **state)
{
    struct option table[STRATEGY_CHOICE_ROWS];
    struct strategy_choice c;
    size_t count;

    (void)state;
    strategy_choice_init(&c, strategy_kinds);
    count = strategy_choice_rows(&c, table);
    for (size_t k = 0; k < STRATEGY_KINDS; k++)
        for (size_t i = 0; i < c.counts[k]; i++) {
            const struct option *own = &c.rows[k][i];
            size_t at = 0;

            while (at < count && strcmp(table[at].name, own->name) != 0)
                at++;
            assert_true(at < count);
            assert_int_equal(table[at].kind, own->kind);
            assert_true(table[at].minimum == own->minimum && table[at].maximum == own->maximum);
            assert_string_equal(table[at].help, own->help);
            assert_string_equal(table[at].choices ? table[at].choices : "", own->choices ? own->choices : "");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),        cmocka_unit_test(test_values),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fingerprint), cmocka_unit_test(test_same_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
