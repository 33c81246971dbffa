/* Shards: every item is one worker's, sizes differ by one at most, and both rules are those of their definitions. */
#include "dataset/shard.h"

#include "tests/check.h"

#include <string.h>

static void test_every_item_once(void **state)
{
    (void)state;
    for (int rule = SHARD_MODULO; rule <= SHARD_CONTIGUOUS; rule++)
        for (int kind = SHARD_RECORDS; kind <= SHARD_FILES; kind++)
            for (int count = 1; count <= 9; count++)
                for (uint64_t n = 0; n <= 40; n++) {
                    int taken[40] = { 0 };

                    for (int index = 0; index < count; index++) {
                        const struct shard s = { (enum shard_kind)kind, count, index, (enum shard_rule)rule };
                        const uint64_t size = shard_size(&s, n);
                        uint64_t has = 0;

                        assert_true(size == n / (uint64_t)count || size == n / (uint64_t)count + 1);
                        assert_int_equal(shard_is_short(&s, n), n < (uint64_t)count);
                        for (uint64_t k = 0; k < size; k++) {
                            const uint64_t i = shard_item(&s, k, n);

                            assert_true(i < n && (k == 0 || i > shard_item(&s, k - 1, n)));
                            assert_true(shard_has(&s, i, n));
                            taken[i]++;
                        }
                        for (uint64_t i = 0; i < 50; i++)
                            has += (uint64_t)shard_has(&s, i, n);
                        assert_int_equal(has, size);
                    }
                    for (uint64_t i = 0; i < n; i++)
                        assert_int_equal(taken[i], 1);
                }
}

/* 10 items, 4 workers, by hand. */
static void test_rules(void **state)
{
    static const uint64_t modulo[4][3] = { { 0, 4, 8 }, { 1, 5, 9 }, { 2, 6 }, { 3, 7 } };
    static const uint64_t contiguous[4][3] = { { 0, 1, 2 }, { 3, 4, 5 }, { 6, 7 }, { 8, 9 } };

    (void)state;
    for (int index = 0; index < 4; index++)
        for (uint64_t k = 0; k < (index < 2 ? 3 : 2); k++) {
            assert_int_equal(shard_item(&(struct shard){ SHARD_FILES, 4, index, SHARD_MODULO }, k, 10),
                             modulo[index][k]);
            assert_int_equal(shard_item(&(struct shard){ SHARD_FILES, 4, index, SHARD_CONTIGUOUS }, k, 10),
                             contiguous[index][k]);
        }
}

static void test_kinds(void **state)
{
    const struct shard none = { .kind = SHARD_NONE, .count = 3, .index = 1 };
    const struct shard records = { .kind = SHARD_RECORDS, .count = 3, .index = 1 };
    const struct shard files = { .kind = SHARD_FILES, .count = 3, .index = 1 };
    const struct shard large = { SHARD_RECORDS, 1000, 999, SHARD_CONTIGUOUS };

    (void)state;
    assert_int_equal(shard_size(&none, 2), 2);
    assert_int_equal(shard_item(&none, 1, 2), 1);
    assert_true(shard_has(&none, 1, 2) && !shard_has(&none, 2, 2) && !shard_is_short(&none, 2));
    for (uint64_t f = 0; f < 6; f++) {
        assert_true(shard_has_file(&records, f, 6) && shard_has_file(&none, f, 6));
        assert_int_equal(shard_has_file(&files, f, 6), f % 3 == 1);
    }
    assert_true(shard_item(&large, shard_size(&large, UINT64_MAX) - 1, UINT64_MAX) == UINT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
