/* A server where server 0 decides about pushes: what goes to the arbiter and to the follower, cuts, who is late. */
#include "tests/failing_allocation.h"
#include "tests/trainer/server_cores.h"

/* Two of three make an update. */
static struct server_plan plan_of(int tallies)
{
    struct server_plan plan = plan_sync;

    plan.tallies = tallies;
    plan.decided = 1;
    plan.arbiter = (struct arbiter_plan){ .workers = WORKERS,
                                          .synchronous = 1,
                                          .aggregate = 2,
                                          .staleness = ARBITER_UNBOUNDED,
                                          .first_step = 10,
                                          .max_steps = 13 };
    return plan;
}

static void push_all(struct server_core *c, int worker)
{
    for (size_t k = 0; k < PACKETS; k++) {
        assert_true(server_core_takes_push(c, worker, k));
        push(c, worker, k);
        assert_false(server_core_takes_push(c, worker, k));
    }
}

/* Expects an update with these fates, in every packet. */
static void assert_applied(struct server_core *c, int64_t step)
{
    for (size_t k = 0; k < PACKETS; k++) {
        const struct server_action a = due(c);

        assert_int_equal(a.kind, SERVER_APPLY);
        assert_int_equal(a.application.packet, k);
        assert_int_equal(a.application.step, step);
    }
    assert_int_equal(due(c).kind, SERVER_NOTHING);
}

static void test_step(void **state)
{
    struct server_core *first = core_of(plan_of(1)), *second = core_of(plan_of(0));
    struct server_action a;

    (void)state;
    assert_true(server_core_takes_tally(first));
    assert_false(server_core_takes_tally(second));
    for (int w = 1; w < WORKERS; w++) {
        push_all(first, w);
        push_all(second, w);
        tally(first, w, &part, 0);
    }
    assert_int_equal(due(second).kind, SERVER_NOTHING); /* it waits for server 0 */
    a = due(first);
    assert_int_equal(a.kind, SERVER_RULING);
    assert_true(a.ruling.decides);
    assert_non_null(server_core_verdict(first, 1));
    assert_null(server_core_verdict(first, 0));
    server_core_decision(second, &a.ruling.decision);
    assert_applied(first, 10);
    assert_applied(second, 10);
    assert_int_equal(server_core_step(first), 11);
    assert_int_equal(server_core_statistics(first).used, 2);
    assert_true(server_core_room(first) > WORKERS);
    push_all(first, 0);
    tally(first, 0, &part, TALLY_TERM); /* the server's own signal ends it with the next update */
    push_all(first, 2);
    tally(first, 2, &part, 0);
    push_all(first, 1);
    tally(first, 1, &part, 0);
    assert_int_equal(due(first).kind, SERVER_RULING);
    assert_int_equal(server_core_verdict(first, 0)->flags, TALLY_TERM);
    assert_int_equal(server_core_verdict(first, 0)->dropped, 1);
    assert_applied(first, 11);
    push_all(first, 2); /* and who comes then only gets a verdict */
    tally(first, 2, &part, 0);
    a = due(first);
    assert_int_equal(a.kind, SERVER_RULING);
    assert_false(a.ruling.decides);
    assert_int_equal(due(first).kind, SERVER_NOTHING);
    server_core_free(first);
    server_core_free(second);
}

static void test_cut(void **state)
{
    struct server_core *first = core_of(plan_of(1)), *second = core_of(plan_of(0));
    struct server_action a, b;

    (void)state;
    for (int w = 0; w < 2; w++) {
        push_all(first, w);
        tally(first, w, &part, 0);
    }
    a = due(first);
    server_core_decision(second, &a.ruling.decision);
    control(first, 0, CONTROL_FREEZE, 0);
    control(second, 0, CONTROL_FREEZE, 0);
    b = cut(first, 100);
    assert_int_equal(b.kind, SERVER_COUNTS);
    assert_int_equal(b.counts[0], 1);
    assert_int_equal(b.counts[1], 11);
    b = cut(second, 100);
    assert_int_equal(b.counts[0], 1);
    assert_int_equal(b.counts[1], 0);
    assert_false(server_core_takes_tally(first)); /* nothing is decided while it is frozen */
    control(first, 0, CONTROL_CUT, 1);
    control(second, 0, CONTROL_CUT, 1);
    assert_int_equal(cut(first, 100).kind, SERVER_NOTHING);
    assert_applied(first, 10);
    assert_int_equal(cut(first, 100).kind, SERVER_SNAPSHOT);
    tally(first, 2, &part, 0); /* server 0 is released, and decides */
    push_all(first, 0);
    tally(first, 0, &part, 0);
    push_all(first, 1);
    tally(first, 1, &part, 0);
    a = due(first);
    assert_int_equal(a.kind, SERVER_RULING);
    server_core_decision(second, &a.ruling.decision);
    assert_int_equal(cut(second, 100).kind, SERVER_NOTHING);
    push_all(second, 0);
    push_all(second, 1);
    assert_applied(second, 10); /* but no more than the cut */
    for (int w = 0; w < WORKERS; w++)
        push_all(second, w);
    assert_int_equal(due(second).kind, SERVER_NOTHING);
    assert_int_equal(cut(second, 100).kind, SERVER_SNAPSHOT);
    assert_applied(second, 11);
    assert_true(server_core_takes_tally(first));
    server_core_free(first);
    server_core_free(second);
}

static void test_late(void **state)
{
    struct server_core *first = core_of(plan_of(1)), *second;
    struct server_action a;
    int64_t step;

    (void)state;
    assert_late(first, 11, 0, "111");
    push_all(first, 1);
    assert_int_equal(server_core_waits_for(first, &step), 0);
    assert_int_equal(step, 10);
    assert_late(first, 11, 0, "111"); /* its tally may still come */
    tally(first, 1, &part, 0);
    assert_late(first, 11, 0, "101");
    tally(first, 0, &part, 0); /* its packets have not come */
    a = due(first);
    second = core_of(plan_of(0));
    assert_late(second, 11, 0, "111");
    push_all(second, 0);
    assert_late(second, 11, 0, "011"); /* as far as it knows */
    server_core_decision(second, &a.ruling.decision);
    assert_late(first, 11, 0, "100");
    push_all(first, 0);
    assert_applied(first, 10);
    assert_late(first, 11, 0, "111");
    assert_late(first, 11, 5, "000");

    assert_late(second, 11, 0, "010");
    assert_int_equal(server_core_waits_for(second, &step), 0);
    assert_int_equal(step, 10);
    control(second, 0, CONTROL_FREEZE, 0);
    cut(second, 0);
    assert_late(second, 11, 0, "100"); /* worker 0 owes the cut */
    control(second, 0, CONTROL_CUT, 1);
    assert_late(second, 11, 0, "010");
    push_all(second, 1);
    assert_applied(second, 10);
    assert_late(second, 11, 0, "000");
    assert_int_equal(cut(second, 0).kind, SERVER_SNAPSHOT);
    server_core_waits_for(second, &step);
    assert_int_equal(step, 11);
    server_core_free(first);
    server_core_free(second);
}

/* Asynchronous, with a bound: who waits for a slower one is not late, and is heard from anew once it may go on. */
static void test_late_bounded(void **state)
{
    struct server_plan plan = plan_async();
    struct server_action a;
    struct server_core *c;

    (void)state;
    plan.arbiter.staleness = 0;
    plan.arbiter.max_steps = 30;
    c = core_of(plan);
    for (int w = 0; w < 2; w++) {
        push_all(c, w);
        tally(c, w, &part, 0);
        settle(c);
    }
    assert_late(c, 101, 101, "001");
    done(c, 2, 0);
    assert_int_equal(server_core_due(c, 120, &a, NULL), OK);
    assert_int_equal(a.kind, SERVER_RULING);
    for (size_t k = 0; k < PACKETS; k++) {
        assert_int_equal(server_core_due(c, 120, &a, NULL), OK);
        assert_int_equal(a.kind, SERVER_APPLY);
    }
    assert_late(c, 125, 125, "000");
    assert_late(c, 131, 131, "110");
    server_core_free(c);
}

static void test_replay_of_another(void **state)
{
    struct arrival items[] = { { 0, 1, 5 } };
    const struct arrivals record = { .items = items, .count = 1 };
    struct server_plan plan = plan_of(1);
    struct server_action a;
    struct server_core *c;

    (void)state;
    plan.arbiter.replay = &record;
    c = core_of(plan);
    push_all(c, 1);
    tally(c, 1, &part, 0);
    assert_int_equal(server_core_due(c, 0, &a, NULL), ERR_CORRUPT);
    server_core_free(c);
}

static void test_no_memory(void **state)
{
    const struct server_plan plan = plan_of(1);
    struct server_core *c;

    (void)state;
    for (long n = 1;; n++) {
        int rc;

        calls = 0;
        fail_at = n;
        rc = server_core_new(&c, &plan, NULL);
        fail_at = 0;
        if (rc == OK)
            break;
        assert_int_equal(rc, ERR_NOMEM);
    }
    assert_int_equal(calls, 3 + 7 + 6); /* of the core, the follower, the arbiter: all of them failed once */
    server_core_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_late_bounded),
        cmocka_unit_test(test_replay_of_another),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
