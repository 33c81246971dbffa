/* Every rule by which server 0 decides about synchronous pushes, push by push. */
#include "tests/failing_allocation.h"
#include "tests/trainer/arbiters.h"

/* ---- synchronous ------------------------------------------------------------------------------------------------- */

static void test_first_three(void **state)
{
    struct arbiter *a = arbiter_of(together);
    const struct verdict *v;
    struct ruling r;

    (void)state;
    push(a, 2);
    push(a, 0);
    expect(a, "");
    assert_true(arbiter_expects(a, 1) && !arbiter_expects(a, 2));
    push(a, 3);
    assert_string_equal(next(a, &r), "u! . u! u!");
    assert_int_equal(r.decision.number, 0);
    assert_int_equal(r.decision.step, FIRST);
    assert_int_equal(r.push_count, 3);
    assert_null(arbiter_verdict(a, 1));
    v = arbiter_verdict(a, 3);
    assert_true(v->score.loss == 1 + 4 + 8 && v->score.weight == 24);
    assert_int_equal(v->global_step, FIRST + 1);
    assert_int_equal(v->more, 1);
    assert_int_equal(v->values, 1);
    assert_int_equal(v->used, 1);
    assert_int_equal(v->dropped, 0);
    assert_int_equal(v->other, -1);
    assert_int_equal(arbiter_step(a), FIRST + 1);
    expect(a, "");
    assert_null(arbiter_verdict(a, 3));

    push(a, 1); /* late: it waits for the next update, and is told that it was not used */
    push(a, 0);
    push(a, 2);
    expect(a, "");
    push(a, 3);
    assert_string_equal(next(a, &r), "u! d! u! u!");
    assert_int_equal(r.push_count, 4);
    assert_memory_equal(&r.pushes[0], &((struct arrival){ 1, 1, 0 }), sizeof *r.pushes);
    assert_memory_equal(&r.pushes[3], &((struct arrival){ 1, 3, 1 }), sizeof *r.pushes);
    v = arbiter_verdict(a, 1);
    assert_int_equal(v->used, 0);
    assert_int_equal(v->dropped, 1);
    assert_int_equal(v->values, 1);
    assert_true(v->score.loss == 1 + 4 + 8);
    push(a, 1); /* fresh again */
    push(a, 0);
    push(a, 2);
    expect(a, "u! u! u! .");
    assert_int_equal(arbiter_statistics(a)->used, 9);
    assert_int_equal(arbiter_statistics(a)->dropped, 1);
    assert_int_equal(arbiter_statistics(a)->absent, 3);
    assert_true(arbiter_statistics(a)->samples == 72);
    arbiter_free(a);
    arbiter_free(NULL);
}

/* More have come than are needed before anybody asked: the first to come are taken, the last is late. */
static void test_more_at_once(void **state)
{
    struct arbiter *a = arbiter_of(together);

    (void)state;
    push(a, 3);
    push(a, 2);
    push(a, 1);
    push(a, 0);
    expect(a, ". u! u! u!");
    expect(a, "");
    push(a, 1);
    push(a, 2);
    push(a, 3);
    expect(a, "d! u! u! u!");
    arbiter_free(a);
}

/* After the last update whoever comes is sent home. */
static void test_end(void **state)
{
    struct arbiter *a = arbiter_of(together);
    const struct verdict *v;
    struct ruling r;

    (void)state;
    for (int step = 0; step < 4; step++) {
        for (int w = 0; w < 3; w++)
            push(a, w);
        assert_string_equal(next(a, &r), "u! u! u! .");
        assert_int_equal(arbiter_verdict(a, 0)->more, step < 3);
    }
    expect(a, "");
    push(a, 3);
    assert_string_equal(next(a, &r), ". . . v");
    assert_int_equal(r.decides, 0);
    v = arbiter_verdict(a, 3);
    assert_int_equal(v->values, 0);
    assert_int_equal(v->more, 0);
    assert_int_equal(v->dropped, 1);
    assert_int_equal(v->global_step, FIRST + 4);
    assert_true(v->score.weight == 24); /* of the last update */
    assert_int_equal(arbiter_statistics(a)->dropped, 1);
    assert_int_equal(arbiter_statistics(a)->absent, 4);
    assert_false(arbiter_expects(a, 3));
    arbiter_free(a);
}

static void test_nothing_to_do(void **state)
{
    struct arbiter_plan plan = together;
    struct arbiter *a;

    (void)state;
    plan.max_steps = FIRST;
    a = arbiter_of(plan);
    push(a, 0);
    expect(a, "v . . .");
    arbiter_free(a);
}

/* A worker that left its step: nobody's pushes are used any more, and all are told. */
static void test_left(void **state)
{
    struct arbiter *a = arbiter_of(together);
    struct tally_part left = part_of(1, TALLY_LEFT | TALLY_TERM);
    struct ruling r;

    (void)state;
    push(a, 0);
    arbiter_push(a, 1, &left);
    assert_string_equal(next(a, &r), "v v . .");
    assert_int_equal(arbiter_verdict(a, 0)->flags, TALLY_LEFT | TALLY_TERM);
    assert_int_equal(arbiter_verdict(a, 0)->dropped, 1);
    assert_int_equal(arbiter_verdict(a, 1)->dropped, 0); /* it had none */
    assert_int_equal(arbiter_verdict(a, 0)->global_step, FIRST);
    push(a, 2);
    push(a, 3);
    assert_string_equal(next(a, &r), ". . v v");
    assert_int_equal(arbiter_verdict(a, 3)->flags, TALLY_LEFT | TALLY_TERM);
    arbiter_free(a);
}

static void test_flags(void **state)
{
    static const struct {
        uint32_t used, late, server, told;
        int more;
    } rows[] = {
        { 0, 0, 0, 0, 1 },
        { TALLY_SAVE, 0, 0, TALLY_SAVE, 1 },
        { 0, TALLY_STOP, 0, TALLY_STOP, 0 },
        { 0, 0, TALLY_TERM, TALLY_TERM, 0 },
        { TALLY_BAD, 0, 0, TALLY_BAD, 0 },
        { 0, TALLY_BAD, 0, 0, 1 }, /* its gradients do not count */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arbiter *a = arbiter_of(together);
        struct tally_part used = part_of(1, rows[i].used), late = part_of(3, rows[i].late);
        struct ruling r;

        for (int w = 0; w < 3; w++)
            push(a, w);
        expect(a, "u! u! u! .");
        arbiter_push(a, 3, &late);
        arbiter_push(a, 1, &used);
        arbiter_flags(a, rows[i].server);
        push(a, 0);
        push(a, 2);
        assert_string_equal(next(a, &r), "u! u! u! d!");
        for (int w = 0; w < WORKERS; w++) {
            assert_int_equal(arbiter_verdict(a, w)->flags, rows[i].told);
            assert_int_equal(arbiter_verdict(a, w)->more, rows[i].more);
        }
        arbiter_free(a);
    }
}

/* A wish to save is told until worker 0 knows it. */
static void test_save_until_known(void **state)
{
    struct arbiter *a = arbiter_of(together);
    struct tally_part saves = part_of(1, TALLY_SAVE);
    struct ruling r;

    (void)state;
    arbiter_push(a, 1, &saves);
    push(a, 2);
    push(a, 3);
    assert_string_equal(next(a, &r), ". u! u! u!");
    assert_int_equal(arbiter_verdict(a, 2)->flags, TALLY_SAVE);
    push(a, 0);
    for (int w = 1; w < 4; w++)
        push(a, w);
    assert_string_equal(next(a, &r), "d! u! u! u!");
    assert_int_equal(arbiter_verdict(a, 0)->flags, TALLY_SAVE);
    for (int w = 0; w < 3; w++)
        push(a, w);
    assert_string_equal(next(a, &r), "u! u! u! .");
    assert_int_equal(arbiter_verdict(a, 0)->flags, 0);
    arbiter_free(a);
}

/* Only members of a step are compared, and named by their own numbers. */
static void test_replicas_differ(void **state)
{
    struct arbiter *a = arbiter_of(together);
    struct ruling r;

    (void)state;
    for (int w = 1; w < WORKERS; w++)
        arbiter_push(a, w, &(struct tally_part){ .hash = w == 3 ? 6 : 5, .hashed = 1 });
    assert_string_equal(next(a, &r), ". u! u! u!");
    assert_int_equal(arbiter_verdict(a, 1)->first, 1);
    assert_int_equal(arbiter_verdict(a, 1)->other, 3);
    arbiter_free(a);
}

static void test_no_memory(void **state)
{
    struct arbiter *a;
    struct error e;
    int rc;

    (void)state;
    for (long n = 1;; n++) {
        calls = 0;
        fail_at = n;
        rc = arbiter_new(&a, &together, &e);
        fail_at = 0;
        if (rc == OK)
            break;
        assert_int_equal(rc, ERR_NOMEM);
        assert_string_equal(e.message, "no memory to decide about the pushes of 4 workers");
    }
    assert_int_equal(calls, 6); /* all of them failed once */
    arbiter_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_three),
        cmocka_unit_test(test_more_at_once),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_save_until_known),
        cmocka_unit_test(test_replicas_differ),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
