/* Lists of steps against plain arrays: figures, cuts, pairs out of order; regular steps take one stretch. */
#include "eventlog/read/step_list.h"

#include "base/random.h"
#include "tests/check.h"

#include <string.h>

enum { MOST = 200 };

static void compare(const struct step_list *l, const int64_t *steps, size_t n)
{
    int64_t least = steps[0], most = steps[0], before, after;
    uint64_t distinct = 0, back = 0;
    struct step_figures f;
    size_t at = 0;

    assert_int_equal(l->steps, n);
    assert_int_equal(step_list_figures(l, &f), 1);
    for (size_t i = 0; i < n; i++) {
        int known = 0;

        for (size_t k = 0; k < i && !known; k++)
            known = steps[k] == steps[i];
        distinct += !known;
        least = steps[i] < least ? steps[i] : least;
        most = steps[i] > most ? steps[i] : most;
        if (!i || steps[i] >= steps[i - 1])
            continue;
        back++;
        assert_int_equal(step_list_back(l, &at, &before, &after), 1);
        assert_true(before == steps[i - 1] && after == steps[i]);
    }
    assert_int_equal(step_list_back(l, &at, &before, &after), 0);
    assert_true(f.first == steps[0] && f.last == steps[n - 1] && f.least == least && f.most == most);
    assert_int_equal(f.out_of_order, back);
    assert_int_equal(f.distinct, distinct);
}

static void test_random_steps(void **state)
{
    struct random r;
    (void)state;

    random_init(&r, 3, RANDOM_TEST, 0, 0);
    for (int round = 0; round < 3000; round++) {
        struct step_list l = STEP_LIST_EMPTY;
        int64_t steps[MOST], step = 0;
        size_t n = 1 + random_u32(&r) % (MOST - 1);

        for (size_t i = 0; i < n; i++) {
            switch (random_u32(&r) % 8) {
            case 0: step = (int64_t)(random_u32(&r) % 20) - 10; break;
            case 1: break;
            case 2: step += 2; break;
            default: step++; break;
            }
            steps[i] = step;
            assert_int_equal(step_list_add(&l, step, 0), 1);
        }
        compare(&l, steps, n);
        step_list_release(&l);
    }
}

/* What TensorBoard keeps: a step removes those from it on. */
static void test_cuts(void **state)
{
    struct random r;
    (void)state;

    random_init(&r, 4, RANDOM_TEST, 0, 0);
    for (int round = 0; round < 3000; round++) {
        struct step_list l = STEP_LIST_EMPTY;
        int64_t kept[MOST], step = 0;
        int marks[MOST];
        size_t n = 0, marked = 0;

        for (int i = 0; i < MOST; i++) {
            int mark = random_u32(&r) % 16 == 0;

            step = random_u32(&r) % 12 ? step + 1 + (random_u32(&r) % 9 == 0) : (int64_t)(random_u32(&r) % 40) - 5;
            while (n && kept[n - 1] >= step)
                n--;
            step_list_cut(&l, step);
            assert_int_equal(l.steps, n);
            kept[n] = step;
            marks[n++] = mark;
            assert_int_equal(step_list_add(&l, step, mark), 1);
        }
        compare(&l, kept, n);
        for (size_t i = 0; i < n; i++)
            marked += marks[i] == 1;
        assert_int_equal(step_list_marked(&l, 1), marked);
        assert_int_equal(step_list_marked(&l, 0), n - marked);
        step_list_release(&l);
    }
}

static void test_memory_and_ends(void **state)
{
    static const int64_t ends[] = { INT64_MIN, 0, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX };
    struct step_list l = STEP_LIST_EMPTY;
    (void)state;

    for (int64_t i = 0; i < 100000; i++)
        assert_int_equal(step_list_add(&l, 1000 + 10 * i, 0), 1);
    assert_int_equal(l.count, 1);
    step_list_cut(&l, 1025);
    assert_int_equal(l.steps, 3);
    assert_int_equal(l.items[0].last, 1020);
    step_list_cut(&l, INT64_MIN);
    assert_int_equal(l.steps, 0);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        assert_int_equal(step_list_add(&l, ends[i], 0), 1);
    compare(&l, ends, sizeof ends / sizeof *ends);
    step_list_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_memory_and_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
