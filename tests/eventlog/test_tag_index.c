/* Numbers for tags: the same for the same bytes, NULs in them as well. */
#include "eventlog/format/tag_index.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static void test_tag_index(void **state)
{
    struct tag_index t = TAG_INDEX_EMPTY;
    char tag[32];

    (void)state;
    assert_true(tag_index_find(&t, "", 0) == TAG_INDEX_NONE);
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < 1000; i++) {
            size_t n = (size_t)snprintf(tag, sizeof tag, "tag %zu", i);

            assert_int_equal(tag_index_add(&t, tag, n), i);
            assert_int_equal(tag_index_find(&t, tag, n), i);
            assert_int_equal(t.count, round ? 1000 : i + 1);
        }
    for (size_t i = 0; i < 4000; i++) { /* in no order, and behind one that is known some that are not */
        size_t number = i * i * 7919 % 1000, n = (size_t)snprintf(tag, sizeof tag, "tag %zu", number);

        assert_int_equal(tag_index_find(&t, tag, n), number);
        assert_true(tag_index_find(&t, tag, n - 1) == (number < 10 ? TAG_INDEX_NONE : number / 10));
        tag[0] = 'T';
        assert_true(tag_index_find(&t, tag, n) == TAG_INDEX_NONE);
    }
    assert_int_equal(tag_index_add(&t, "tag\0 1", 6), 1000);
    assert_int_equal(tag_index_add(&t, "tag", 3), 1001);
    assert_int_equal(tag_index_add(&t, "", 0), 1002);
    assert_true(tag_index_find(&t, "tag\0 2", 6) == TAG_INDEX_NONE);
    assert_memory_equal(t.entries[1000].text, "tag\0 1", 7);
    tag_index_release(&t);
}

static void test_items(void **state)
{
    struct item {
        uint64_t number;
        char text[9];
    };
    struct tag_index t = TAG_INDEX_OF(struct item);
    const struct item *all;
    char tag[32];

    (void)state;
    for (size_t again = 0; again < 2; again++) { /* an index that was emptied is as good as a new one */
        for (size_t i = 0; i < 1000; i++) {
            size_t n = (size_t)snprintf(tag, sizeof tag, "tag %zu", i);
            struct item *item = tag_index_item(&t, tag, n);

            assert_non_null(item);
            assert_memory_equal(item, &(struct item){ 0 }, sizeof *item);
            item->number = i;
            memset(item->text, 0xff, sizeof item->text);
            assert_ptr_equal(tag_index_item(&t, tag, n), item);
        }
        all = t.items;
        for (size_t i = 0; i < 1000; i++)
            assert_int_equal(all[i].number, i);
        tag_index_release(&t);
        assert_null(t.items);
    }
}

/* Thousands of runs have an index each, and few tags. */
static void test_few_take_little(void **state)
{
    struct tag_index t = TAG_INDEX_EMPTY;
    char tag[32];

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        size_t n = (size_t)snprintf(tag, sizeof tag, "tag %zu", i);

        assert_int_equal(tag_index_add(&t, tag, n), i);
        assert_true(t.capacity <= 2 * (i + 1));
        assert_true(t.slot_count <= 4 * (i + 1));
    }
    tag_index_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tag_index), cmocka_unit_test(test_items),
                                        cmocka_unit_test(test_few_take_little) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
