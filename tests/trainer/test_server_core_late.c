/* Whom a parameter server waits for in vain, and from when on. */
#include "tests/trainer/server_cores.h"

static void test_late_together(void **state)
{
    struct server_core *c = core_of(plan_sync);
    int64_t step;

    (void)state;
    assert_late(c, 10, 0, "000");
    assert_late(c, 10.5, 0, "111"); /* nobody has sent anything */
    assert_late(c, 20, 10.5, "000");
    push(c, 1, 0);
    assert_late(c, 11, 0, "101");
    assert_int_equal(server_core_waits_for(c, &step), 0);
    push(c, 0, 0);
    push(c, 2, 0);
    settle(c);
    push(c, 0, 1);
    push(c, 2, 1);
    assert_int_equal(server_core_waits_for(c, &step), 1);
    assert_int_equal(step, 10);
    assert_late(c, 11, 0, "010");
    push(c, 1, 1);
    settle(c);
    assert_int_equal(server_core_waits_for(c, &step), 0);
    assert_int_equal(step, 11);
    tally(c, 2, &part, 0);
    assert_late(c, 11, 0, "110");
    done(c, 0, 0);
    assert_late(c, 11, 0, "010"); /* who is done owes nothing */
    server_core_free(c);
}

static void test_late_alone(void **state)
{
    struct server_core *c = core_of(plan_async());

    (void)state;
    server_core_push(c, 1, 0, 5);
    server_core_tally(c, 2, &part, 0, 7);
    assert_late(c, 10.5, 10, "100");
    assert_late(c, 16, 15.9, "110"); /* the server waits for no tally of worker 2 */
    assert_late(c, 18, 18, "110");
    server_core_free(c);
}

/* Where all are silent, and one of the other servers may be whom they wait for, this one waits a little longer. */
static void test_late_beside_others(void **state)
{
    struct server_plan plan = plan_sync;
    struct server_core *c;
    char late[WORKERS];

    (void)state;
    plan.servers = 2;
    c = core_of(plan);
    assert_false(server_core_late(c, 13.9, 0, 10, 4, late));
    assert_true(server_core_late(c, 14.1, 0, 10, 4, late));
    push(c, 0, 0); /* that one answers: of the others it is known who */
    assert_true(server_core_late(c, 10.1, 0, 10, 4, late));
    assert_int_equal(late[0], 0);
    assert_int_equal(late[1], 1);
    server_core_free(c);

    plan = plan_async();
    plan.servers = 2;
    c = core_of(plan);
    server_core_push(c, 0, 0, 5.2);
    assert_true(server_core_late(c, 10.1, 10.1, 10, 4, late)); /* heard of worker 0 within half the limit */
    assert_false(server_core_late(c, 10.3, 10.3, 10, 4, late));
    assert_true(server_core_late(c, 14.1, 14.1, 10, 4, late));
    server_core_free(c);
}

static void test_late_frozen(void **state)
{
    struct server_core *c = core_of(plan_sync);

    (void)state;
    control(c, 0, CONTROL_FREEZE, 0);
    cut(c, 0);
    assert_late(c, 11, 0, "100"); /* worker 0 owes the cut */
    control(c, 0, CONTROL_CUT, 1);
    step_of(c, 0);
    step_of(c, 2);
    assert_late(c, 11, 0, "010"); /* worker 1 owes its push */
    step_of(c, 1);
    settle(c);
    assert_late(c, 11, 0, "000");
    assert_int_equal(cut(c, 12).kind, SERVER_SNAPSHOT);
    assert_late(c, 21, 12, "000"); /* frozen time is nobody's fault */
    assert_late(c, 23, 12, "111");
    server_core_free(c);
}

static void test_late_at_end(void **state)
{
    struct server_core *c = core_of(plan_sync);

    (void)state;
    for (int w = 0; w < WORKERS; w++)
        done(c, w, 0);
    assert_late(c, 11, 0, "100"); /* worker 0 lets the servers go */
    server_core_free(c);
}

/* It hears of no tallies: before the first packet all owe it. */
static void test_late_without_tallies(void **state)
{
    struct server_plan plan = plan_sync;
    struct server_core *c;

    (void)state;
    plan.tallies = 0;
    c = core_of(plan);
    assert_late(c, 11, 0, "111");
    push(c, 1, 0);
    assert_late(c, 11, 0, "101");
    server_core_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_together),      cmocka_unit_test(test_late_alone),
        cmocka_unit_test(test_late_beside_others), cmocka_unit_test(test_late_frozen),
        cmocka_unit_test(test_late_at_end),        cmocka_unit_test(test_late_without_tallies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
