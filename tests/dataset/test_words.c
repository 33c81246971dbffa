/* words.h and vocabulary.h: what a word is, where a text is none, and which words get which number. */
#include "dataset/vocabulary.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_words(void **state)
{
    static const struct {
        const char *text, *words; /* words: separated by | */
    } cases[] = {
        { "", "" },
        { " \n\t\r", "" },
        { "The cat, the CAT.", "the|cat|,|the|cat|." },
        { "don't read-only 'tis -x- a--b", "don't|read-only|'|tis|-|x|-|a|-|-|b" },
        { "x1 2.5 (c) 1991", "x1|2|.|5|(|c|)|1991" },
        { "an <unk> word<unk>", "an|<unk>|word|<unk>" },
        { "<unknown>", "<|unknown|>" },
        { "na\xc3\xafve \xc3\x9c"
          "ber",
          "na\xc3\xafve|\xc3\x9c"
          "ber" },
        { "\xe2\x80\x9cquoted\xe2\x80\x9d\xc2\xa0\xe2\x80\x94", "\xe2\x80\x9c|quoted|\xe2\x80\x9d|\xe2\x80\x94" },
        { "\xf0\x9f\x90\x88"
          "cat \xe4\xb8\xad",
          "\xf0\x9f\x90\x88"
          "cat|\xe4\xb8\xad" },
        { "last'", "last|'" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[100], got[200] = "";
        size_t at = 0, n = strlen(cases[i].text);
        struct word w;

        memcpy(text, cases[i].text, n); /* without NUL: nothing behind is read */
        while (words_next(text, n, &at, &w, NULL) > 0) {
            if (*got)
                strcat(got, "|");
            strncat(got, w.text, w.length);
        }
        assert_int_equal(at, n);
        assert_string_equal(got, cases[i].words);
    }
}

static void test_not_text(void **state)
{
    static const struct {
        const char *text;
        size_t n, at;
        const char *sentence;
    } cases[] = {
        { "ab\0c", 4, 2, "byte 2: 00 is not text in UTF-8" },
        { "ab \xff", 4, 3, "byte 3: ff" },
        { "caf\xe9", 4, 3, "byte 3: e9" },          /* Latin-1 */
        { "\xc0\x80", 2, 0, "byte 0: c0" },         /* NUL in two bytes */
        { "x \xe0\x80\xaf", 5, 2, "byte 2: e0" },   /* too long a form */
        { "\xed\xa0\x80", 3, 0, "byte 0: ed" },     /* a surrogate */
        { "\xf4\x90\x80\x80", 4, 0, "byte 0: f4" }, /* beyond U+10FFFF */
        { "a \xe2\x80", 4, 2, "byte 2: e2" },       /* cut off */
        { "a-\x80", 3, 2, "byte 2: 80" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = malloc(cases[i].n);
        struct error e = { 0 };
        size_t at = 0;
        struct word w;
        int rc;

        memcpy(text, cases[i].text, cases[i].n);
        while ((rc = words_next(text, cases[i].n, &at, &w, &e)) > 0)
            ;
        assert_int_equal(rc, ERR_CORRUPT);
        assert_int_equal(at, cases[i].at);
        assert_non_null(strstr(e.message, cases[i].sentence));
        free(text);
    }
}

static void test_lines(void **state)
{
    static const char text[] = "one\ntwo\n\nfour";

    (void)state;
    assert_int_equal(words_skip_lines(text, 13, 0, 1), 4);
    assert_int_equal(words_skip_lines(text, 13, 0, 3), 9);
    assert_int_equal(words_skip_lines(text, 13, 4, 2), 9);
    assert_int_equal(words_skip_lines(text, 13, 0, 4), 13);
    assert_int_equal(words_skip_lines(text, 13, 0, 99), 13);
    assert_int_equal(words_skip_lines(text, 13, 13, 1), 13);
}

static struct word word_of(const char *text)
{
    return (struct word){ text, strlen(text) };
}

static void test_vocabulary(void **state)
{
    /* c three times, then a, b and <unk> twice each, d once */
    static const char *const text[] = { "b", "c", "a", "<unk>", "c", "d", "b", "<unk>", "c", "a" };
    const char *const wanted[] = { "<unk>", "<end>", "c", "a", "b", "d" };
    uint64_t hashes[8] = { 0 };

    (void)state;
    for (int32_t size = 2; size < 8; size++)
        for (int backwards = 0; backwards < 2; backwards++) {
            struct vocabulary *v;
            int32_t used;

            assert_int_equal(vocabulary_new(&v, NULL), OK);
            for (size_t i = 0; i < 10; i++)
                assert_int_equal(vocabulary_count(v, word_of(text[backwards ? 9 - i : i]), NULL), OK);
            used = vocabulary_choose(v, size);
            assert_int_equal(used, size < 6 ? size : 6);
            for (int32_t k = 0; k < 6; k++) {
                const struct word w = vocabulary_word(v, k < used ? k : 0);

                if (k < used)
                    assert_memory_equal(w.text, wanted[k], w.length);
                if (k != VOCABULARY_END)
                    assert_int_equal(vocabulary_find(v, word_of(wanted[k])), k < used ? k : VOCABULARY_UNKNOWN);
            }
            assert_int_equal(vocabulary_find(v, word_of("else")), VOCABULARY_UNKNOWN);
            if (backwards)
                assert_true(vocabulary_hash(v) == hashes[size]);
            hashes[size] = vocabulary_hash(v);
            assert_true(hashes[size] && (hashes[size] != hashes[size - 1]) == (size < 7));
            vocabulary_free(v);
        }
}

/* More words than the first table has room for. */
static void test_many(void **state)
{
    enum { MANY = 30000 };
    char(*text)[8] = calloc(MANY, sizeof *text);
    struct vocabulary *v;

    (void)state;
    assert_int_equal(vocabulary_new(&v, NULL), OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof *text, "%d", i);
        for (int times = 0; times <= (i < 5); times++)
            assert_int_equal(vocabulary_count(v, word_of(text[i]), NULL), OK);
    }
    assert_int_equal(vocabulary_choose(v, MANY + 99), MANY + 2);
    for (int i = 0; i < MANY; i++) {
        const int32_t number = vocabulary_find(v, word_of(text[i]));

        assert_true(number >= VOCABULARY_FIRST && (number < VOCABULARY_FIRST + 5) == (i < 5));
        assert_memory_equal(vocabulary_word(v, number).text, text[i], strlen(text[i]));
    }
    vocabulary_free(v);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),      cmocka_unit_test(test_not_text), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_vocabulary), cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
