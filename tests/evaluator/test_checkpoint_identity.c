/* Which checkpoint: what makes two of them the same one, and a name of any length. */
#include "evaluator/files/opened_checkpoint.h"

#include "tests/check.h"

#include <string.h>

static void test_same(void **state)
{
    const struct checkpoint_identity a = { "model.ckpt-7", 7, 1, 99, 0 };
    struct checkpoint_identity b = checkpoint_identity_of("model.ckpt-7", 7);

    (void)state;
    assert_true(!b.has_digest && !b.digest && !b.digest_after);
    assert_int_equal(checkpoint_identity_same(&a, &b), 0); /* overwritten, or not read */
    b.digest = 99;
    assert_int_equal(checkpoint_identity_same(&a, &b), 1);
    b.digest_after = 5;
    assert_int_equal(checkpoint_identity_same(&a, &b), 1);
    b.step = 8;
    assert_int_equal(checkpoint_identity_same(&a, &b), 0); /* where names come back */
    b = a;
    b.name[11] = '8';
    assert_int_equal(checkpoint_identity_same(&a, &b), 0);
}

static void test_long_name(void **state)
{
    struct checkpoint_identity c;
    char name[300];

    (void)state;
    memset(name, 'x', sizeof name);
    name[299] = '\0';
    c = checkpoint_identity_of(name, -1);
    assert_int_equal(strlen(c.name), CHECKPOINT_NAME_MAX - 1);
    assert_int_equal(c.step, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same), cmocka_unit_test(test_long_name) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
