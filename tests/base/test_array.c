/* Arrays that grow: one by one, at once, and not without memory. */
#include "base/array.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <stdlib.h>

static void test_one_by_one(void **state)
{
    int32_t *items = NULL;
    size_t capacity = 0, grown = 0;

    (void)state;
    for (size_t count = 0; count < 10000; count++) {
        const size_t before = capacity;

        assert_true(ARRAY_ROOM(items, capacity, count + 1));
        assert_true(capacity > count);
        grown += capacity != before;
        items[count] = (int32_t)count;
    }
    assert_true(grown < 14);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(items[i], i);
    free(items);
}

static void test_at_once(void **state)
{
    char *items = NULL, *same;
    size_t capacity = 0, none = 0;

    (void)state;
    assert_true(ARRAY_ROOM(items, capacity, none));
    assert_null(items);
    assert_true(ARRAY_ROOM(items, capacity, 1000));
    assert_true(capacity >= 1000);
    same = items;
    assert_true(ARRAY_ROOM(items, capacity, capacity));
    assert_ptr_equal(items, same);
    free(items);
}

static void test_zeroed(void **state)
{
    uint16_t *items = NULL;
    size_t capacity = 0;

    (void)state;
    for (size_t wanted = 1; wanted < 5000; wanted += wanted / 3 + 1) {
        const size_t before = capacity;

        assert_true(ARRAY_ROOM_ZERO(items, capacity, wanted));
        for (size_t i = 0; i < capacity; i++)
            assert_int_equal(items[i], i < before ? 0xabcd : 0);
        for (size_t i = before; i < capacity; i++)
            items[i] = 0xabcd;
    }
    free(items);
}

static void test_too_much(void **state)
{
    int64_t *items = NULL;
    size_t capacity = 0;

    (void)state;
    assert_true(ARRAY_ROOM(items, capacity, 1));
    items[0] = 5;
    for (size_t wanted = SIZE_MAX; wanted > SIZE_MAX / 16; wanted /= 2) /* more bytes than there are numbers */
        assert_false(ARRAY_ROOM(items, capacity, wanted));
    calls = 0;
    fail_at = 1;
    assert_false(ARRAY_ROOM(items, capacity, 100));
    fail_at = 0;
    assert_int_equal(calls, 1);
    assert_int_equal(capacity, 4);
    assert_int_equal(items[0], 5);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_zeroed),
        cmocka_unit_test(test_too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
