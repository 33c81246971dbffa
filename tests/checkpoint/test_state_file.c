/* The text of `checkpoint`: every way to quote, what is skipped, what is refused. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "checkpoint/directory/state_file.h"

#include <time.h>

#define ZEROS "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
#define TOO_LONG "last_preserved_timestamp: 1" ZEROS ZEROS ZEROS ZEROS

/* wanted: newest, then "|" and each path; NULL: refused. */
static const struct {
    const char *name, *text, *wanted;
} cases[] = {
    { "as TensorFlow writes it",
      "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-1\"\n"
      "all_model_checkpoint_paths: \"m-2\"\n",
      "m-2|m-1|m-2" },
    { "empty", "", "" },
    { "only a comment", "# nothing\n  # more", "" },
    { "empty path", "model_checkpoint_path: \"\"", "" },
    { "single quotes, no blank, CRLF", "model_checkpoint_path:'m-2'\r\nall_model_checkpoint_paths:'a\"b'\r\n",
      "m-2|a\"b" },
    { "escapes", "model_checkpoint_path: \"a\\n\\t\\\\\\\"\\'\\101\\x42\\x4a\\?\\7b\"", "a\n\t\\\"'ABJ?\ab" },
    { "octal UTF-8", "model_checkpoint_path: \"\\303\\244\\344\\270\\226\"", "\xc3\xa4\xe4\xb8\x96" },
    { "raw UTF-8", "model_checkpoint_path: \"\xc3\xa4\"", "\xc3\xa4" },
    { "unicode escapes", "model_checkpoint_path: \"\\u00e4\\U0001F600\"", "\xc3\xa4\xf0\x9f\x98\x80" },
    { "hexadecimal in capitals, ended by another letter", "model_checkpoint_path: \"\\X4A\\x4Ag\\x4 \\18\"",
      "JJg\x04 \x01"
      "8" },
    { "short code points", "model_checkpoint_path: \"\\u0041\\u4e16\"", "A\xe4\xb8\x96" },
    { "strings join", "model_checkpoint_path: \"a\" 'b'\n  \"c\" # end\n", "abc" },
    { "separators",
      "model_checkpoint_path: \"a\"; all_model_checkpoint_paths: \"b\", all_model_checkpoint_paths: \"c\"", "a|b|c" },
    { "list",
      "all_model_checkpoint_paths: [\"b\", 'c' \"d\" , \"e\"] all_model_checkpoint_paths: [] "
      "all_model_checkpoint_paths: \"f\"",
      "|b|cd|e|f" },
    { "comment between", "model_checkpoint_path # here\n : # there\n \"a\"", "a" },
    { "the last one counts", "model_checkpoint_path: \"a\" model_checkpoint_path: \"b\"", "b" },
    { "unknown fields",
      "a: 1 b: -2.5e3f c: word d { e: \"}\" f < g: [1, 2, {h: 3}] > } [x.y/z] { i: 1 } j: [] "
      "k: { } l: - 3 m: 0x1F model_checkpoint_path: \"p\" n: inf",
      "p" },
    { "times",
      "all_model_checkpoint_timestamps: 1700000000.1234567 all_model_checkpoint_timestamps: [1, 2.5e0] "
      "last_preserved_timestamp: -1.5f model_checkpoint_path: \"p\"",
      "p" },
    { "times with a suffix",
      "all_model_checkpoint_timestamps: [1F, 2f, inf, 3]; last_preserved_timestamp: 7 model_checkpoint_path: "
      "\"\\r\\n\"",
      "\r\n" },
    { "a time that is too long", TOO_LONG, NULL },
    { "no hexadecimal digit", "model_checkpoint_path: \"\\xg\"", NULL },
    { "cut string", "model_checkpoint_path: \"m", NULL },
    { "newline in a string", "model_checkpoint_path: \"m\n\"", NULL },
    { "no quotes", "model_checkpoint_path: m", NULL },
    { "no colon", "model_checkpoint_path \"m\"", NULL },
    { "no value", "model_checkpoint_path:", NULL },
    { "no name", ": \"m\"", NULL },
    { "zero byte", "model_checkpoint_path: \"a\\0b\"", NULL },
    { "unknown escape", "model_checkpoint_path: \"\\q\"", NULL },
    { "escape at the end", "model_checkpoint_path: \"\\", NULL },
    { "octal too large", "model_checkpoint_path: \"\\777\"", NULL },
    { "unicode too large", "model_checkpoint_path: \"\\U00110000\"", NULL },
    { "list cut", "all_model_checkpoint_paths: [\"a\"", NULL },
    { "list without comma", "all_model_checkpoint_paths: [\"a\" 1]", NULL },
    { "message cut", "a { b: 1", NULL },
    { "wrong closer", "a { b: 1 >", NULL },
    { "time that is none", "last_preserved_timestamp: soon", NULL },
    { "binary", "\x01\x02\xff", NULL },
};

static void flatten(const struct state_file *s, struct buffer *out)
{
    buffer_clear(out);
    if (s->newest)
        buffer_append_text(out, s->newest);
    for (size_t i = 0; i < s->count; i++) {
        buffer_append_byte(out, '|');
        buffer_append_text(out, s->paths[i]);
    }
}

static void test_cases(void **state)
{
    struct buffer flat = BUFFER_EMPTY, text = BUFFER_EMPTY;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct state_file s;
        struct error e = { 0 };
        size_t n = strlen(cases[i].text);
        char *exact = malloc(n + 1); /* so that a sanitizer sees a read behind it */
        int rc;

        memcpy(exact, cases[i].text, n);
        rc = state_file_parse(exact = realloc(exact, n ? n : 1), n, &s, &e);
        free(exact);
        if (rc != (cases[i].wanted ? OK : ERR_CORRUPT))
            fail_msg("%s: %d, %s", cases[i].name, rc, e.message);
        if (rc != OK) {
            assert_says(e, "line ");
            assert_int_equal(s.count, 0);
            continue;
        }
        flatten(&s, &flat);
        assert_string_equal(buffer_text(&flat), cases[i].wanted);
        /* What we write reads the same. */
        buffer_clear(&text);
        state_file_encode(&s, &text);
        state_file_release(&s);
        assert_int_equal(state_file_parse(buffer_text(&text), text.length, &s, &e), OK);
        flatten(&s, &flat);
        assert_string_equal(buffer_text(&flat), cases[i].wanted);
        state_file_release(&s);
    }
    buffer_release(&flat);
    buffer_release(&text);
}

static void test_times_and_text(void **state)
{
    static const char text[] = "model_checkpoint_path: \"a\\303\\244\\n\"\n"
                               "all_model_checkpoint_paths: \"a\\303\\244\\n\"\n"
                               "all_model_checkpoint_timestamps: 1700000000.1234567\n"
                               "last_preserved_timestamp: 1700000000.5\n";
    struct buffer out = BUFFER_EMPTY;
    struct state_file s;
    struct error e = { 0 };

    (void)state;
    assert_int_equal(state_file_parse(text, sizeof text - 1, &s, &e), OK);
    assert_int_equal(s.timestamp_count, 1);
    assert_true(s.timestamps[0] == 1700000000.1234567 && s.last_preserved == 1700000000.5);
    state_file_encode(&s, &out);
    assert_string_equal(buffer_text(&out), text);
    buffer_release(&out);
    state_file_release(&s);
    /* Where a text is refused. */
    assert_int_equal(state_file_parse("a: 1\nb: 2\n  c 3", 15, &s, &e), ERR_CORRUPT);
    assert_says(e, "line 3, column 5: a : is missing");
}

/* Cut anywhere it is refused or names less; never more, and never out of bounds. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t n = 0; n < strlen(cases[i].text); n++) {
            char *exact = malloc(n ? n : 1);
            struct state_file s;

            memcpy(exact, cases[i].text, n);
            if (state_file_parse(exact, n, &s, NULL) == OK)
                state_file_release(&s);
            free(exact);
        }
}

static double seconds_for(size_t lines)
{
    struct buffer text = BUFFER_EMPTY;
    struct timespec begin, end;
    struct state_file s;
    struct error e = { 0 };

    for (size_t i = 0; i < lines; i++)
        buffer_format(&text, "all_model_checkpoint_paths: \"/some/where/model.ckpt-%zu\"\n", i);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    assert_int_equal(state_file_parse(text.data, text.length, &s, &e), OK);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    assert_int_equal(s.count, lines);
    state_file_release(&s);
    buffer_release(&text);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

/* Many lines, and brackets nested beyond any use, take time and memory in proportion. */
static void test_linear(void **state)
{
    struct error e = { 0 };
    struct state_file s;
    char *deep = malloc(1 << 20);

    (void)state;
    memset(deep, '[', 1 << 20);
    memcpy(deep, "a:", 2);
    assert_int_equal(state_file_parse(deep, 1 << 20, &s, &e), ERR_CORRUPT);
    assert_says(e, "nested too deep");
    free(deep);
    assert_true(seconds_for(200000) < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_times_and_text),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_linear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
