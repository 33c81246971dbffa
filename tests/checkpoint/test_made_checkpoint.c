/* Checkpoints of all kinds, made by seed with an encoder that is not the product's: the sound ones are read bit for bit,
 * the damaged ones refused. tests/fuzz/made_checkpoint.h has what they are made of. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "tests/fuzz/made_checkpoint.h"

enum { SEEDS = 2000 };

static void test_made(void **state)
{
    struct fixture *f = *state;
    char prefix[PATH_MAX];
    unsigned verdicts[3] = { 0 };

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct made_checkpoint made;
        struct error e = { 0 };

        made_checkpoint_init(&made, decisions_from_seed(seed));
        snprintf(prefix, sizeof prefix, "%s/of-%d", f->directory, made.shards);
        made_checkpoint_write(&made, prefix);
        if (made_checkpoint_judge(&made, prefix, &e) != OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, e.message);
        verdicts[made.verdict]++;
        made_checkpoint_release(&made);
    }
    assert_in_range(verdicts[MADE_SOUND], SEEDS / 4, SEEDS); /* enough of each to mean something */
    assert_in_range(verdicts[MADE_DAMAGED], SEEDS / 4, SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_made, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
