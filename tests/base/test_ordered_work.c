/* ordered_work.h: results come in the order of the items, whoever runs them and however long that takes. */
#include "base/program/ordered_work.h"

#include "base/clock.h"

#include "tests/check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct item {
    size_t number, result;
    char *own;
};

struct taken {
    size_t next;
    atomic_size_t run;
};

static void square(void *context, void *item)
{
    struct taken *t = context;
    struct item *i = item;

    for (size_t k = 0; k < i->number * 7919 % 50; k++) /* some wait for others */
        sched_yield();
    if (!i->own)
        i->own = malloc(1);
    i->result = i->number * i->number;
    atomic_fetch_add(&t->run, 1);
}

static void take(void *context, void *item)
{
    struct taken *t = context;
    struct item *i = item;

    assert_int_equal(i->number, t->next);
    assert_int_equal(i->result, t->next * t->next);
    t->next++;
}

static void release(void *context, void *item)
{
    (void)context;
    free(((struct item *)item)->own);
}

static void give(struct ordered_work *w, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct item *item = ordered_work_item(w);

        assert_ptr_equal(item, ordered_work_item(w));
        item->number = i;
        ordered_work_give(w);
    }
}

static void rounds(size_t n)
{
    struct taken t = { 0 };
    const struct ordered_work_calls calls = { sizeof(struct item), square, take, &t, NULL };
    struct ordered_work *w;

    assert_int_equal(ordered_work_open(&w, &calls, NULL), OK);
    ordered_work_finish(w);
    give(w, 0, n);
    ordered_work_finish(w);
    assert_int_equal(t.next, n);
    give(w, n, 2 * n + 1); /* after a finish, more */
    ordered_work_finish(w);
    assert_int_equal(t.next, 2 * n + 1);
    assert_int_equal(atomic_load(&t.run), 2 * n + 1);
    give(w, 2 * n + 1, 2 * n + 4); /* left before its end */
    ordered_work_close(w, release);
}

struct waited {
    atomic_int calls;
    int taken;
};

/* Done only when the caller has waited for it twice. */
static void until_waited(void *context, void *item)
{
    struct waited *w = context;
    double end = clock_monotonic() + 60;
    (void)item;

    while (atomic_load(&w->calls) < 2 && clock_monotonic() < end)
        sched_yield();
}

static void count_taken(void *context, void *item)
{
    struct waited *w = context;
    (void)item;

    w->taken++;
}

static void count_waiting(void *context, const void *item)
{
    struct waited *w = context;

    assert_int_equal(((const struct item *)item)->number, 7 + (size_t)w->taken); /* the oldest */
    atomic_fetch_add(&w->calls, 1);
}

static void told_while_waiting(void **state)
{
    struct waited waited = { .taken = 0 };
    const struct ordered_work_calls calls = { sizeof(struct item), until_waited, count_taken, &waited, count_waiting };
    struct ordered_work *w;
    (void)state;

    assert_int_equal(ordered_work_open(&w, &calls, NULL), OK);
    if (ordered_work_threads(w)) {
        give(w, 7, 9);
        ordered_work_finish(w);
        assert_int_equal(waited.taken, 2);
        assert_true(atomic_load(&waited.calls) >= 2);
    }
    ordered_work_close(w, release);
}

static void in_order(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++)
        rounds(n);
    rounds(3000);
    ordered_work_close(NULL, NULL);
}

static void on_one_core(void **state)
{
    cpu_set_t before, one;
    int core = 0;
    (void)state;

    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(core, &before))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    for (size_t n = 0; n < 10; n++)
        rounds(n);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(in_order), cmocka_unit_test(on_one_core),
                                        cmocka_unit_test(told_while_waiting) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
