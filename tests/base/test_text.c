/* Buffer, bytes, JSON strings, and the command line's table. */

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/program/options.h"
#include "base/text.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static void test_buffer(void **state)
{
    struct buffer b = BUFFER_EMPTY;

    (void)state;
    assert_string_equal(buffer_text(&b), "");
    for (int i = 0; i < 1000; i++)
        buffer_format(&b, "%d,", i);
    assert_int_equal(b.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_int_equal(b.data[b.length], '\0');
    assert_null(buffer_reserve(&b, (size_t)-1));
    assert_false(buffer_ok(&b));
    buffer_append(&b, "x", 1); /* does nothing */
    assert_int_equal(b.length, 3890);
    buffer_clear(&b);
    buffer_append(&b, "a\0b", 3);
    assert_true(buffer_ok(&b) && b.length == 3 && memcmp(b.data, "a\0b", 4) == 0);
    buffer_release(&b);
}

static void test_varints(void **state)
{
    static const struct {
        uint64_t v;
        const char *bytes;
        int n;
    } cases[] = {
        { 0, "\x00", 1 },
        { 127, "\x7f", 1 },
        { 128, "\x80\x01", 2 },
        { 300, "\xac\x02", 2 },
        { UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10 },
    };
    uint8_t out[VARINT_MAX];
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(put_varint(out, cases[i].v), cases[i].n);
        assert_memory_equal(out, cases[i].bytes, (size_t)cases[i].n);
        assert_int_equal(varint_size(cases[i].v), cases[i].n);
        assert_int_equal(get_varint(out, (size_t)cases[i].n, &v), cases[i].n);
        assert_true(v == cases[i].v);
        assert_int_equal(get_varint(out, (size_t)cases[i].n - 1, &v), 0);
    }
    assert_int_equal(get_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, &v), -1);
    assert_int_equal(get_varint("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, &v), -1);
}

static void test_order_of_bytes(void **state)
{
    (void)state;
    assert_true(bytes_compare("a", 1, "b", 1) < 0);
    assert_true(bytes_compare("b", 1, "ab", 2) > 0);
    assert_true(bytes_compare("a", 1, "ab", 2) < 0);
    assert_true(bytes_compare("a\0b", 3, "a\0a", 3) > 0);
    assert_true(bytes_compare("\xff", 1, "a", 1) > 0);
    assert_true(bytes_compare(NULL, 0, "a", 1) < 0);
    assert_int_equal(bytes_compare("ab", 2, "abc", 2), 0);
    assert_int_equal(bytes_compare(NULL, 0, NULL, 0), 0);
}

static void test_utf8_and_json(void **state)
{
    static const struct {
        const char *text, *json, *ascii;
    } cases[] = {
        { "a\"b\\c/", "\"a\\\"b\\\\c/\"", "\"a\\\"b\\\\c/\"" },
        { "\n\t\r\b\f\x01", "\"\\n\\t\\r\\b\\f\\u0001\"", "\"\\n\\t\\r\\b\\f\\u0001\"" },
        { "\xc3\xa4", "\"\xc3\xa4\"", "\"\\u00e4\"" },
        { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\"" },
        { "x\xff"
          "y",
          "\"x\xef\xbf\xbdy\"", "\"x\\ufffdy\"" },
    };
    static const char *const bad[] = { "\x80",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xe0\x80\x80",
                                       "\xed\xa0\x80",
                                       "\xf0\x80\x80\x80",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xe4\xb8",
                                       "\xfe" };
    struct buffer b = BUFFER_EMPTY;
    size_t place = 9;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(utf8_valid(bad[i], strlen(bad[i]), &place));
        assert_int_equal(place, 0);
    }
    assert_true(utf8_valid("\xf4\x8f\xbf\xbf\xed\x9f\xbf", 7, NULL));
    for (size_t n = 0; n < 20; n++) { /* behind so much ASCII, of which words are taken at once */
        char text[32] = "abcdefghijklmnopqrst";

        strcpy(text + n, "\xc3\xa4z\xff"
                         "end");
        assert_false(utf8_valid(text, n + 7, &place));
        assert_int_equal(place, n + 3);
        assert_true(utf8_valid(text, n + 3, NULL));
        assert_false(utf8_valid(text, n + 1, &place)); /* cut in a character */
        assert_int_equal(place, n);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int ascii = 0; ascii < 2; ascii++) {
            buffer_clear(&b);
            json_span(&b, cases[i].text, strlen(cases[i].text), ascii);
            assert_string_equal(buffer_text(&b), ascii ? cases[i].ascii : cases[i].json);
        }
    buffer_release(&b);
}

static int parse(const char *line, int64_t *steps, int *sync, const char **mode, int *positional, char **rest,
                 struct error *e)
{
    struct option table[] = {
        { OPTION_INT, 'n', "max-steps", steps, "N", "How far.", NULL, 1, 100, 0, 0 },
        { OPTION_FLAG, 0, "sync", sync, NULL, "Wait.", NULL, 0, 0, 0, 0 },
        { OPTION_CHOICE, 0, "run-option", mode, "NAME", "Which.", "mpi|ps|single", 0, 0, 0, 0 },
    };
    struct options o = { .program = "trainer",
                         .usage = "[OPTION...]",
                         .summary = "Trains.",
                         .examples = "  trainer\n",
                         .table = table,
                         .count = 3 };
    static char copy[200];
    char *argv[20] = { copy };
    int argc = 1, rc;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    rc = options_parse(&o, argc, argv, positional, e);
    for (int i = 0; rc == OPTIONS_RUN && i < *positional; i++)
        rest[i] = argv[i + 1];
    return rc;
}

static void test_options(void **state)
{
    static const struct {
        const char *line, *says;
    } refused[] = {
        { "--max-step 7", "--max-steps" },
        { "--max-steps 101", "max-steps" },
        { "--max-steps 7x", "max-steps" },
        { "--max-steps", "max-steps" },
        { "--run-option mp", "did you mean mpi?" },
        { "--sync=3", "sync" },
        { "-q", "-q" },
        { "--zzzzzz", "zzzzzz" },
    };
    const char *mode = "single";
    int64_t steps = 5;
    int sync = 1, positional = 0;
    char *rest[20];
    struct error e = { 0 };

    (void)state;
    assert_int_equal(
        parse("a --max-steps=9 b --no-sync --run-option ps -- --c", &steps, &sync, &mode, &positional, rest, &e),
        OPTIONS_RUN);
    assert_true(steps == 9 && !sync && strcmp(mode, "ps") == 0 && positional == 3);
    assert_string_equal(rest[0], "a");
    assert_string_equal(rest[2], "--c");
    assert_int_equal(parse("-n 11", &steps, &sync, &mode, &positional, rest, &e), OPTIONS_RUN);
    assert_int_equal(steps, 11);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        memset(&e, 0, sizeof e);
        if (parse(refused[i].line, &steps, &sync, &mode, &positional, rest, &e) != ERR_ARG ||
            !strstr(e.message, refused[i].says))
            fail_msg("%s: %s", refused[i].line, e.message);
    }
}

static void test_choices(void **state)
{
    static const char *const none[] = { NULL }, *const two[] = { "mpi", "ps", NULL };
    char text[8];

    (void)state;
    assert_string_equal(options_choices(none, text, sizeof text), "");
    assert_string_equal(options_choices(two, text, sizeof text), "mpi|ps");
    assert_string_equal(options_choices(two, text, 5), "mpi|");
}

/* A flag that may take a count: the next word is the count if it is one, and never an option's or a file's name. */
static void test_counts(void **state)
{
    static const struct {
        const char *line;
        int64_t keep;
        int sync;
    } cases[] = {
        /* keep -1: refused */
        { "", 7, 0 },
        { "--keep", 1, 0 },
        { "--keep 3", 3, 0 },
        { "--keep=4", 4, 0 },
        { "--keep --sync", 1, 1 },
        { "--keep 3 --sync", 3, 1 },
        { "--keep 3 --keep", 1, 0 },
        { "--no-keep", 0, 0 },
        { "--keep 3 --no-keep", 0, 0 },
        { "--keep 0", -1, 0 },
        { "--keep 11", -1, 0 },
        { "--keep=", -1, 0 },
        { "--keep=x", -1, 0 },
        { "--no-keep=3", -1, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t keep = 7;
        int sync = 0, positional = 0, argc = 1, rc;
        struct option table[] = {
            { OPTION_COUNT, .name = "keep", .value = &keep, .argument = "N", .help = "Keep.", .minimum = 1,
              .maximum = 10 },
            { OPTION_FLAG, .name = "sync", .value = &sync, .help = "Wait." },
        };
        const struct options o = { .program = "x", .usage = "", .summary = "", .table = table, .count = 2 };
        char copy[64], *argv[8] = { copy };
        struct error e = { 0 };

        snprintf(copy, sizeof copy, "%s", cases[i].line);
        for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
            argv[argc++] = word;
        rc = options_parse(&o, argc, argv, &positional, &e);
        if ((rc == OPTIONS_RUN) != (cases[i].keep >= 0) ||
            (rc == OPTIONS_RUN && (keep != cases[i].keep || sync != cases[i].sync || positional)))
            fail_msg("%s: %d, %d, %s", cases[i].line, (int)keep, sync, e.message);
    }
}

static void test_stem(void **state)
{
    (void)state;
    assert_int_equal(text_stem("a.index", 7, ".index"), 1);
    assert_int_equal(text_stem("a.index.gz", 7, ".index"), 1); /* of the first bytes alone */
    assert_int_equal(text_stem("a.index", 6, ".index"), 0);
    assert_int_equal(text_stem(".index", 6, ".index"), 0);
    assert_int_equal(text_stem("index", 5, ".index"), 0);
    assert_int_equal(text_stem("", 0, "x"), 0);
    assert_int_equal(text_stem("ab", 2, ""), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stem),           cmocka_unit_test(test_buffer),        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_order_of_bytes), cmocka_unit_test(test_utf8_and_json), cmocka_unit_test(test_options),
        cmocka_unit_test(test_choices),        cmocka_unit_test(test_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
