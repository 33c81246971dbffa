/* Work in several threads: all of it is done, by as many as are asked for, within bounds. */
#include "eventlog/server/workers.h"

#include "tests/check.h"

struct work {
    int left, done, began; /* began: calls of take() */
};

static void *take(void *context)
{
    struct work *w = context;

    __atomic_fetch_add(&w->began, 1, __ATOMIC_RELAXED);
    while (__atomic_fetch_sub(&w->left, 1, __ATOMIC_RELAXED) > 0)
        __atomic_fetch_add(&w->done, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void test_all_is_done(void **state)
{
    static const size_t counts[] = { 0, 1, 2, 7, WORKERS_MOST, WORKERS_MOST + 1 };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct work w = { .left = 1000 };
        const size_t most = counts[i] < WORKERS_MOST ? counts[i] : WORKERS_MOST;

        workers_run(counts[i], take, &w);
        assert_int_equal(w.done, 1000);
        assert_int_equal(w.began, most ? most : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_is_done) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
