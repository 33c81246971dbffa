/* Work in several threads: all of it is done, and what is done behind others leaves the caller's priority as it was. */
#include "eventlog/server/workers.h"

#include "tests/check.h"

#include <sys/resource.h>

struct work {
    int left, done, began, lowest, highest; /* began: calls of take(); priorities of those that took something */
};

static int own_priority(void)
{
    return getpriority(PRIO_PROCESS, 0);
}

static void *take(void *context)
{
    struct work *w = context;
    const int priority = own_priority();

    __atomic_fetch_add(&w->began, 1, __ATOMIC_RELAXED);
    while (__atomic_fetch_sub(&w->left, 1, __ATOMIC_RELAXED) > 0) {
        if (priority < __atomic_load_n(&w->lowest, __ATOMIC_RELAXED))
            __atomic_store_n(&w->lowest, priority, __ATOMIC_RELAXED);
        if (priority > __atomic_load_n(&w->highest, __ATOMIC_RELAXED))
            __atomic_store_n(&w->highest, priority, __ATOMIC_RELAXED);
        __atomic_fetch_add(&w->done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void test_all_is_done(void **state)
{
    static const size_t counts[] = { 0, 1, 2, 7, WORKERS_MOST, WORKERS_MOST + 1 };
    const int own = own_priority();
    (void)state;

    for (enum worker_rank rank = WORKERS_EQUAL; rank <= WORKERS_BEHIND; rank++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            struct work w = { .left = 1000, .lowest = 100, .highest = -100 };
            const size_t most = counts[i] < WORKERS_MOST ? counts[i] : WORKERS_MOST;

            workers_run(counts[i], rank, take, &w);
            assert_int_equal(w.done, 1000);
            assert_int_equal(w.began, most ? most : 1);
            assert_int_equal(own_priority(), own);
            if (rank == WORKERS_EQUAL)
                assert_int_equal(w.highest, own);
            else if (own < 19)
                assert_true(w.lowest > own);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_is_done) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
