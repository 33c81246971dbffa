/* Children beside each other: their files, their statuses, who ends whom, and what asks them to end. */
#include "trainer/launch/child.h"

#include "tests/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const fails[] = { "sh", "-c", "exit 3", NULL };
static const char *const works[] = { "sh", "-c", "exit 0", NULL };
static const char *const waits[] = { "sleep", "1000000", NULL };
static const char *const says[] = { "sh", "-c", "cat; echo out; echo wrong >&2", NULL };

static void read_file(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    out[fread(out, 1, size - 1, f)] = '\0';
    fclose(f);
}

static void test_files(void **state)
{
    char directory[] = "/tmp/test_child.XXXXXX", output[64], errors[64], text[16];
    struct child child = { .words = says, .output = output, .errors = errors };

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(output, sizeof output, "%s/o", directory);
    snprintf(errors, sizeof errors, "%s/e", directory);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(children_run(&child, 1, NULL, NULL, NULL), OK);
        assert_int_equal(child.end.status, 0);
        read_file(output, text, sizeof text);
        assert_string_equal(text, "out\n"); /* there is nothing on standard input */
        read_file(errors, text, sizeof text);
        assert_string_equal(text, "wrong\n");
    }
    unlink(output);
    unlink(errors);
    rmdir(directory);
}

/* The first one's failure ends the second; the second's does not end the first. */
static void test_two(void **state)
{
    struct child children[2] = { { .words = fails }, { .words = waits } };

    (void)state;
    assert_int_equal(children_run(children, 2, NULL, NULL, NULL), OK);
    assert_int_equal(children[0].end.status, 3);
    assert_int_equal(children[1].end.status, 128 + SIGTERM);
    assert_int_equal(children[0].end.asked, 0);
    children[0].words = works;
    children[1].words = fails;
    assert_int_equal(children_run(children, 2, NULL, NULL, NULL), OK);
    assert_int_equal(children[0].end.status, 0);
    assert_int_equal(children[1].end.status, 3);
}

static void ask(void *context)
{
    (*(int *)context)++;
    kill(getpid(), SIGINT);
}

/* A signal to this process ends both, and is known afterwards; `look` was called. */
static void test_asked(void **state)
{
    struct child children[2] = { { .words = waits }, { .words = waits } };
    int looks = 0;

    (void)state;
    signal(SIGINT, SIG_DFL); /* a shell that runs the tests in the background ignores it, and so would the children */
    assert_int_equal(children_run(children, 2, ask, &looks, NULL), OK);
    assert_true(looks >= 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(children[i].end.asked, SIGINT);
        assert_true(children[i].end.status == 128 + SIGINT || children[i].end.status == 128 + SIGTERM);
    }
}

static void test_no_program(void **state)
{
    static const char *const none[] = { "/nowhere/program", NULL };
    struct child_end end;

    (void)state;
    assert_int_equal(child_run(none, &end, NULL), OK);
    assert_int_equal(end.status, 127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_two),
        cmocka_unit_test(test_asked),
        cmocka_unit_test(test_no_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
