/* Words of a command as a shell splits them, and the placeholders in them. */
#include "evaluator/score/command_words.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *want;
} cases[] = {
    /* want: each word in <>, or "!" and a word of the error */
    { "a", "<a>" },
    { "  python3 -u\teval.py\n{step} ", "<python3><-u><eval.py><{step}>" },
    { "a 'b c' \"d e\" f\\ g", "<a><b c><d e><f g>" },
    { "a''b '' \"\"", "<ab><><>" },
    { "'a\\b' \"a\\\"b\\\\c\\d\" \\'", "<a\\b><a\"b\\c\\d><'>" },
    { "sh -c 'echo \"$X\" | cat'", "<sh><-c><echo \"$X\" | cat>" },
    { "a$b *.c ~ #x", "<a$b><*.c><~><#x>" },
    { "", "!empty" },
    { " \t\n", "!empty" },
    { "a 'b", "!quote (')" },
    { "a \"b", "!quote (\")" },
    { "a\\", "!backslash" },
    { "\"a\\\"", "!quote" },
};

static void test_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        char got[256] = "", **words;
        size_t used = 0;
        int rc = command_words_split(cases[i].text, &words, &e);

        if (*cases[i].want == '!') {
            assert_int_equal(rc, ERR_ARG);
            assert_null(words);
            assert_non_null(strstr(e.message, cases[i].want + 1));
            continue;
        }
        assert_int_equal(rc, OK);
        for (size_t k = 0; words[k]; k++)
            used += (size_t)snprintf(got + used, sizeof got - used, "<%s>", words[k]);
        assert_string_equal(got, cases[i].want);
        command_words_free(words);
    }
}

static void test_fill(void **state)
{
    static const struct command_value values[] = { { "checkpoint", "my dir/it's {step}", NULL },
                                                   { "step", "700", NULL } };
    char *const words[] = { (char[]){ "{step}" }, (char[]){ "--x={checkpoint}:{step}" },
                            (char[]){ "{other} {step {} {\"a\":1}" }, NULL };
    const struct {
        char *word;
        const char *near;
    } wrong[] = {
        { (char[]){ "{chekpoint}" }, "{checkpoint}" }, { (char[]){ "x{setp}" }, "{step}" },
        { (char[]){ "{print} {next} {}" }, NULL },     { (char[]){ "{step}{checkpoint}" }, NULL },
        { (char[]){ "{\"step\":{step}}" }, NULL },
    };
    char **out;

    (void)state;
    assert_int_equal(command_words_fill(words, values, 2, &out, NULL), OK);
    assert_string_equal(out[0], "700");
    assert_string_equal(out[1], "--x=my dir/it's {step}:700"); /* what was put in is not looked at again */
    assert_string_equal(out[2], "{other} {step {} {\"a\":1}");
    assert_null(out[3]);
    command_words_free(out);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *const one[] = { wrong[i].word, NULL };
        struct error e = { 0 };

        assert_int_equal(command_words_check(one, values, 2, &e), wrong[i].near ? ERR_ARG : OK);
        if (wrong[i].near)
            assert_non_null(strstr(e.message, wrong[i].near));
    }
}

/* A file's name must not become code. */
static void test_code(void **state)
{
    static const struct command_value values[] = { { "checkpoint", NULL, "EVALUATOR_CHECKPOINT" },
                                                   { "step", NULL, NULL } };
    static const char *const refused[] = {
        "sh -c 'wc -c {checkpoint}'",
        "/bin/bash -lc 'eval.py {checkpoint} | tail -1'",
        "bash -eu -o pipefail -c \"x '{checkpoint}'\"",
        "env A=1 nice -n 5 dash -c 'x {checkpoint}'",
        "timeout 60 sh -ec {checkpoint}",
        "busybox sh -c 'x {checkpoint}'",
        "su nobody -c 'x {checkpoint}'",
        "fish --command='x {checkpoint}'",
        "python3.13 -u -c 'print(open(\"{checkpoint}\"))'",
        "perl -e '-s \"{checkpoint}\"'",
        "bash -c -e 'x {checkpoint}'",
        "bash -c -- 'x {checkpoint}'",
        "bash -ceuo pipefail 'x {checkpoint}'",
        "bash --rcfile f -c 'x {checkpoint}'",
        "perl -MTime::HiRes -e 'x {checkpoint}'",
        "perl -ne'x {checkpoint}'",
        "python3 -Xtracemalloc -c 'x({checkpoint})'",
        "python3.13t -c 'x({checkpoint})'",
        "php -dmemory_limit=1 -r 'x {checkpoint}'",
        "env -S 'x {checkpoint}'",
        "flock f -c 'x {checkpoint}'",
        "nodejs --print='x {checkpoint}'",
        "sbatch --wrap='x {checkpoint}'",
        "watch x {checkpoint}",
        "sudo ssh gpu1 x {checkpoint}",
        "ssh gpu1 evaluate.sh {checkpoint}",
        "ssh -p 22 gpu1 'evaluate.sh {checkpoint}'",
    };
    static const char *const fine[] = {
        "python3 evaluate.py {checkpoint}",
        "python3 evaluate.py -c {checkpoint}",
        "bash evaluate.sh -c {checkpoint}",
        "sh -c 'echo accuracy 0.{step}'",
        "sh -c 'x \"$EVALUATOR_CHECKPOINT\"'",
        "sh -c 'x \"$1\"' sh {checkpoint}",
        "python3 -c 'import sys; print(sys.argv[1])' {checkpoint}",
        "python3 -m evaluate -c {checkpoint}",
        "shuf -c {checkpoint}",
        "python3 run.py eval {checkpoint}",
        "python3 -mscore {checkpoint}",
        "python3 -m score {checkpoint}",
        "bash -euo pipefail run.sh {checkpoint}",
        "bash -c -- 'x \"$1\"' _ {checkpoint}",
        "env A=1 python3 x.py {checkpoint}",
        "./sshd -c {checkpoint}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused + sizeof fine / sizeof *fine; i++) {
        const size_t bad = sizeof refused / sizeof *refused;
        const char *text = i < bad ? refused[i] : fine[i - bad];
        struct error e = { 0 };
        char **words;
        int rc;

        assert_int_equal(command_words_split(text, &words, &e), OK);
        rc = command_words_check(words, values, 2, &e);
        if (rc != (i < bad ? ERR_ARG : OK) || (i < bad && !strstr(e.message, "\"$EVALUATOR_CHECKPOINT\"")))
            fail_msg("%s: %d, %s", text, rc, e.message);
        command_words_free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_split), cmocka_unit_test(test_fill),
                                        cmocka_unit_test(test_code) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
