/* How an error is set: its code, its system error, and a sentence that fits; and that NULL takes any of them. */
#include "base/error.h"
#include "tests/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void assert_error(const struct error *e, int code, int system, const char *message)
{
    assert_int_equal(e->code, code);
    assert_int_equal(e->system, system);
    assert_string_equal(e->message, message);
}

static void test_set(void **state)
{
    struct error e = { 0 };

    (void)state;
    assert_int_equal(error_set(&e, ERR_CORRUPT, "%s: offset %d", "a", 12), ERR_CORRUPT);
    assert_error(&e, ERR_CORRUPT, 0, "a: offset 12");
}

static void test_system(void **state)
{
    struct error e = { 0 };

    (void)state;
    errno = ENOENT;
    assert_int_equal(error_system(&e, "%s", "a"), ERR_IO);
    assert_error(&e, ERR_IO, ENOENT, "a: No such file or directory");
    errno = ENOMEM;
    assert_int_equal(error_system(&e, "%s", "a"), ERR_NOMEM);
    assert_error(&e, ERR_NOMEM, ENOMEM, "a: Cannot allocate memory");
}

static void test_memory(void **state)
{
    struct error e = { .system = EIO };

    (void)state;
    assert_int_equal(error_memory(&e, NULL, "for %d runs", 3), ERR_NOMEM);
    assert_error(&e, ERR_NOMEM, 0, "no memory for 3 runs");
    assert_int_equal(error_memory(&e, "a/b", "to list it"), ERR_NOMEM);
    assert_error(&e, ERR_NOMEM, 0, "a/b: no memory to list it");
}

static void test_prefix(void **state)
{
    struct error e = { 0 };

    (void)state;
    errno = EMFILE;
    error_system(&e, "b");
    assert_int_equal(error_prefix(&e, "run %s", "a"), ERR_IO);
    assert_error(&e, ERR_IO, EMFILE, "run a: b: Too many open files");
}

/* A path may be longer than a message: what does not fit is cut, and nothing behind the message is written. */
static void test_long(void **state)
{
    struct {
        struct error e;
        char behind[8];
    } a = { .behind = "behind" };
    char path[2 * sizeof a.e.message];

    (void)state;
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    for (int i = 0; i < 4; i++) {
        errno = EIO;
        if (i == 0)
            error_set(&a.e, ERR_ARG, "%s", path);
        else if (i == 1)
            error_system(&a.e, "%s", path);
        else if (i == 2)
            error_memory(&a.e, path, "for %s", path);
        else
            error_prefix(&a.e, "%s", path);
        assert_int_equal(strlen(a.e.message), sizeof a.e.message - 1);
        assert_string_equal(a.behind, "behind");
    }
}

static void test_nobody_asks(void **state)
{
    (void)state;
    errno = EIO;
    assert_int_equal(error_set(NULL, ERR_ARG, "a"), ERR_ARG);
    assert_int_equal(error_system(NULL, "a"), ERR_IO);
    assert_int_equal(error_memory(NULL, "a", "for it"), ERR_NOMEM);
    assert_int_equal(error_prefix(NULL, "a"), OK);
}

static void test_copy(void **state)
{
    struct error e = { ERR_ARG, 0, "as it was" };
    const struct error none = { 0 }, failure = { ERR_IO, ENOSPC, "disk full" };

    (void)state;
    assert_int_equal(error_copy(&e, &none), OK); /* what is known stays */
    assert_error(&e, ERR_ARG, 0, "as it was");
    assert_int_equal(error_copy(NULL, &failure), ERR_IO);
    assert_int_equal(error_copy(&e, &failure), ERR_IO);
    assert_error(&e, ERR_IO, ENOSPC, "disk full");
}

static void test_lack(void **state)
{
    struct error e = { .code = ERR_NOMEM };

    (void)state;
    assert_true(error_is_lack(&e));
    e = (struct error){ .code = ERR_IO, .system = EMFILE };
    assert_true(error_is_lack(&e));
    e.system = ENOENT;
    assert_false(error_is_lack(&e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),    cmocka_unit_test(test_system), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_prefix), cmocka_unit_test(test_long),   cmocka_unit_test(test_nobody_asks),
        cmocka_unit_test(test_copy),   cmocka_unit_test(test_lack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
