/* Every rule of a parameter server, message by message; and random orders of messages over several servers. */
#include "trainer/server/server_core.h"

#include "base/random.h"
#include "tests/failing_allocation.h"
#include "tests/trainer/server_cores.h"

/* ---- pushes ------------------------------------------------------------------------------------------------------ */

/* Each packet by itself, in any order of workers. */
static void test_together(void **state)
{
    struct server_core *c = core_of(plan_sync);

    (void)state;
    for (int64_t step = 10; step < 12; step++)
        for (size_t k = 0; k < PACKETS; k++) {
            struct server_action a;

            push(c, 2, k);
            push(c, 0, k);
            assert_int_equal(due(c).kind, SERVER_NOTHING);
            push(c, 1, k);
            a = due(c);
            assert_int_equal(a.kind, SERVER_APPLY);
            assert_int_equal(a.application.packet, k);
            assert_int_equal(a.application.step, step);
            assert_int_equal(a.application.used_count, WORKERS);
            assert_int_equal(a.application.freed_count, WORKERS);
            for (int w = 0; w < WORKERS; w++)
                assert_int_equal(a.application.fates[w], DECISION_USED | DECISION_ANSWERED);
            assert_int_equal(due(c).kind, SERVER_NOTHING);
        }
    server_core_free(c);
    server_core_free(NULL);
}

/* Packet 0 has the weight by which all packets of its push are divided: none of them is used before it is. */
static void test_weight_first(void **state)
{
    struct server_core *c = core_of(plan_sync);

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int w = 0; w < WORKERS; w++)
            push(c, w, 1);
        assert_false(server_core_takes_push(c, 0, 1)); /* the one before is not used */
        assert_int_equal(due(c).kind, SERVER_NOTHING);
        for (int w = 0; w < WORKERS; w++)
            push(c, w, 0);
        assert_int_equal(due(c).application.packet, 0);
        assert_int_equal(due(c).application.packet, 1);
    }
    server_core_free(c);
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static struct verdict tally_together(struct server_core *c, const struct tally_part *parts, uint32_t flags)
{
    struct server_action a;

    tally(c, 1, &parts[1], flags);
    tally(c, 2, &parts[2], flags);
    assert_int_equal(due(c).kind, SERVER_NOTHING);
    tally(c, 0, &parts[0], flags);
    a = due(c);
    assert_int_equal(a.kind, SERVER_RULING);
    assert_false(a.ruling.decides);
    assert_int_equal(a.ruling.push_count, 0);
    assert_memory_equal(server_core_verdict(c, 0), server_core_verdict(c, 2), sizeof(struct verdict));
    return *server_core_verdict(c, 0);
}

static void test_verdict_together(void **state)
{
    static const struct {
        uint32_t flags[WORKERS], own; /* own: of the server */
        int64_t step;                 /* 10 before */
        uint32_t together;
        int more;
    } rows[] = {
        { { 0, 0, 0 }, 0, 11, 0, 1 },
        { { 0, TALLY_SAVE, 0 }, 0, 11, TALLY_SAVE, 1 },
        { { 0, 0, TALLY_STOP }, 0, 11, TALLY_STOP, 0 },
        { { TALLY_BAD, 0, 0 }, 0, 11, TALLY_BAD, 0 },
        { { 0, TALLY_LEFT, TALLY_INT }, 0, 10, TALLY_LEFT | TALLY_INT, 0 },
        { { 0, 0, 0 }, TALLY_TERM, 11, TALLY_TERM, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct server_core *c = core_of(plan_sync);
        struct tally_part parts[WORKERS];
        struct verdict v;

        for (int w = 0; w < WORKERS; w++)
            parts[w] = (struct tally_part){ { 1 << w, 2 << w, 10 << w, 20 << w }, 0, rows[i].flags[w], 0 };
        v = tally_together(c, parts, rows[i].own);
        assert_true(v.score.loss == 7);
        assert_true(v.score.weight == 14);
        assert_int_equal(v.score.hits, 70);
        assert_int_equal(v.score.units, 140);
        assert_int_equal(v.global_step, rows[i].step);
        assert_int_equal(v.flags, rows[i].together);
        assert_int_equal(v.more, rows[i].more);
        assert_int_equal(v.other, -1);
        assert_true(v.staleness_mean == 0);
        assert_int_equal(server_core_step(c), rows[i].step);
        server_core_free(c);
    }
}

static void test_last_step(void **state)
{
    struct server_core *c = core_of(plan_sync);
    const struct tally_part parts[WORKERS] = { part, part, part };

    (void)state;
    for (int64_t step = 11; step <= 13; step++) {
        const struct verdict v = tally_together(c, parts, 0);

        assert_int_equal(v.global_step, step);
        assert_int_equal(v.more, step < 13);
    }
    server_core_free(c);
}

static void test_replicas_differ(void **state)
{
    static const struct {
        uint64_t hash[WORKERS];
        uint32_t hashed;
        int64_t other;
    } rows[] = {
        { { 5, 5, 5 }, 1, -1 },
        { { 5, 6, 7 }, 1, 1 },
        { { 5, 5, 6 }, 1, 2 },
        { { 5, 6, 7 }, 0, -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct server_core *c = core_of(plan_sync);
        struct tally_part parts[WORKERS];

        for (int w = 0; w < WORKERS; w++)
            parts[w] = (struct tally_part){ .hash = rows[i].hash[w], .hashed = rows[i].hashed };
        assert_int_equal(tally_together(c, parts, 0).other, rows[i].other);
        server_core_free(c);
    }
}

/* A whole step of one worker, and what it is told. */
static struct verdict alone(struct server_core *c, int worker, const struct tally_part *its, uint32_t flags)
{
    struct verdict v;

    for (size_t k = 0; k < PACKETS; k++)
        push(c, worker, k);
    tally(c, worker, its, flags);
    assert_int_equal(due(c).kind, SERVER_RULING);
    assert_non_null(server_core_verdict(c, worker));
    v = *server_core_verdict(c, worker);
    settle(c);
    return v;
}

static void test_staleness(void **state)
{
    struct server_core *c = core_of(plan_async());
    struct verdict v = alone(c, 0, &part, 0); /* all pulled at step 10 */

    (void)state;
    assert_memory_equal(&v.score, &part.score, sizeof part.score);
    assert_int_equal(v.global_step, 11);
    assert_true(v.staleness_mean == 0);
    v = alone(c, 0, &part, 0);
    assert_int_equal(v.staleness_max, 0);
    v = alone(c, 1, &part, 0); /* two updates since its pull */
    assert_int_equal(v.global_step, 13);
    assert_int_equal(v.staleness_max, 2);
    assert_true(v.staleness_mean == 2.0 / 3);
    v = alone(c, 1, &part, 0); /* none since */
    assert_int_equal(v.staleness_max, 2);
    assert_true(v.staleness_mean == 2.0 / 4);
    assert_int_equal(server_core_statistics(c).staleness.pushes, 4);
    assert_int_equal(server_core_statistics(c).staleness.counts[0], 3);
    assert_int_equal(server_core_statistics(c).staleness.counts[2], 1);
    server_core_free(c);
}

/* However the workers take turns, pushes are granted until there are exactly as many as steps. */
static void test_tickets(void **state)
{
    static const int orders[][7] = { { 0, 1, 2, 0, 1, 2, 0 }, { 2, 2, 2, 2, 2, 0, 1 }, { 1, 0, 0, 0, 0, 1, 2 } };

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct server_core *c = core_of(plan_async()); /* 7 steps, the first 3 are granted at the start */
        int more[WORKERS] = { 1, 1, 1 };

        for (int k = 0; k < 7; k++) {
            const int w = orders[i][k];

            assert_true(more[w]);
            more[w] = alone(c, w, &part, 0).more;
            assert_int_equal(more[w], k < 4);
        }
        assert_int_equal(server_core_step(c), 17);
        server_core_free(c);
    }
}

/* What one asynchronous worker, or the server, is asked for is told to all; to save, only until worker 0 knows. */
static void test_flags_alone(void **state)
{
    struct server_core *c = core_of(plan_async());
    struct tally_part saves = part;
    struct verdict v;

    (void)state;
    saves.flags = TALLY_SAVE;
    assert_int_equal(alone(c, 1, &saves, 0).flags, TALLY_SAVE);
    assert_int_equal(alone(c, 2, &part, 0).flags, TALLY_SAVE);
    assert_int_equal(alone(c, 0, &part, 0).flags, TALLY_SAVE);
    assert_int_equal(alone(c, 1, &part, 0).flags, 0);
    v = alone(c, 2, &part, TALLY_TERM);
    assert_int_equal(v.flags, TALLY_TERM);
    assert_int_equal(v.more, 0);
    v = alone(c, 0, &part, 0);
    assert_int_equal(v.flags, TALLY_TERM);
    assert_int_equal(v.more, 0);
    server_core_free(c);

    c = core_of(plan_async());
    done(c, 2, TALLY_INT); /* it left its step, and says so at its end */
    assert_int_equal(alone(c, 0, &part, 0).flags, TALLY_INT);
    server_core_free(c);
}

/* ---- the cut ----------------------------------------------------------------------------------------------------- */

/* What another server has begun is gone on with, and nothing beyond it, nor a tally. */
static void test_cut(void **state)
{
    struct server_core *c = core_of(plan_sync);
    struct server_action a;

    (void)state;
    for (int w = 0; w < WORKERS; w++)
        push(c, w, 0);
    settle(c);
    assert_int_equal(cut(c, 0).kind, SERVER_NOTHING);
    control(c, 0, CONTROL_FREEZE, 0);
    a = cut(c, 5);
    assert_int_equal(a.kind, SERVER_COUNTS);
    assert_int_equal(a.counts[0], 1);
    assert_int_equal(a.counts[1], 11);
    assert_int_equal(cut(c, 5).kind, SERVER_NOTHING);
    for (int w = 0; w < WORKERS; w++)
        push(c, w, 0);
    assert_int_equal(due(c).kind, SERVER_NOTHING);
    control(c, 0, CONTROL_CUT, 2); /* another server has begun it */
    assert_int_equal(due(c).kind, SERVER_APPLY);
    for (int round = 0; round < 2; round++)
        for (int w = 0; w < WORKERS; w++) {
            assert_int_equal(cut(c, 6).kind, SERVER_NOTHING);
            push(c, w, 1);
            tally(c, w, &part, 0);
            settle(c);
        }
    assert_false(server_core_takes_tally(c));
    a = cut(c, 8);
    assert_int_equal(a.kind, SERVER_SNAPSHOT);
    assert_int_equal(a.back, 0);
    assert_int_equal(cut(c, 8).kind, SERVER_NOTHING);
    assert_true(server_core_takes_tally(c)); /* free again */
    server_core_free(c);
}

static void test_cut_back(void **state)
{
    struct server_core *c = core_of(plan_sync);
    struct server_action a;

    (void)state;
    for (int w = 0; w < WORKERS; w++)
        step_of(c, w);
    settle(c);
    control(c, 0, CONTROL_FREEZE, 0);
    a = cut(c, 0);
    assert_int_equal(a.kind, SERVER_COUNTS);
    assert_int_equal(a.counts[0], 1);
    control(c, 0, CONTROL_CUT_BACK, 1);
    a = cut(c, 0);
    assert_int_equal(a.kind, SERVER_SNAPSHOT);
    assert_int_equal(a.back, 1);
    control(c, 0, CONTROL_FREEZE, 0); /* the next one is a usual one again */
    assert_int_equal(cut(c, 0).kind, SERVER_COUNTS);
    assert_int_equal(cut(c, 0).kind, SERVER_NOTHING);
    control(c, 0, CONTROL_CUT, 1);
    assert_int_equal(cut(c, 0).back, 0);
    server_core_free(c);
}

/* A server without tallies, and one without packets, count what they have. */
static void test_other_servers(void **state)
{
    struct server_plan plan = plan_sync;
    struct server_core *c;
    int64_t step;

    (void)state;
    plan.tallies = 0;
    c = core_of(plan);
    assert_false(server_core_takes_tally(c));
    for (int w = 0; w < WORKERS; w++)
        push(c, w, 0);
    settle(c);
    control(c, 0, CONTROL_FREEZE, 0);
    assert_int_equal(cut(c, 0).counts[0], 1);
    control(c, 0, CONTROL_CUT, 1);
    assert_int_equal(cut(c, 0).kind, SERVER_NOTHING);
    for (int w = 0; w < WORKERS; w++)
        push(c, w, 1);
    settle(c);
    assert_int_equal(cut(c, 0).kind, SERVER_SNAPSHOT);
    assert_int_equal(server_core_waits_for(c, &step), 0);
    assert_int_equal(step, 11);
    server_core_free(c);

    plan.tallies = 1;
    plan.packets = 0;
    c = core_of(plan);
    for (int w = 0; w < WORKERS; w++)
        tally(c, w, &part, 0);
    settle(c);
    control(c, 0, CONTROL_FREEZE, 0);
    assert_int_equal(cut(c, 0).counts[0], 1);
    control(c, 0, CONTROL_CUT, 1);
    assert_int_equal(cut(c, 0).kind, SERVER_SNAPSHOT);
    server_core_free(c);
}

static void test_end(void **state)
{
    struct server_core *c = core_of(plan_sync);

    (void)state;
    done(c, 0, 0);
    control(c, 0, CONTROL_FREEZE_LAST, 0);
    done(c, 2, 0);
    assert_int_equal(cut(c, 0).kind, SERVER_NOTHING); /* worker 1 is not done */
    assert_false(server_core_ended(c));
    done(c, 1, 0);
    assert_int_equal(cut(c, 0).kind, SERVER_COUNTS);
    assert_int_equal(cut(c, 0).kind, SERVER_NOTHING);
    assert_false(server_core_ended(c)); /* worker 0 still saves */
    control(c, 0, CONTROL_EXIT, 0);
    assert_true(server_core_ended(c));
    server_core_free(c);

    c = core_of(plan_sync);
    control(c, 0, 99, 0); /* not known: an end, once all are done */
    assert_false(server_core_ended(c));
    for (int w = 0; w < WORKERS; w++)
        done(c, w, 0);
    assert_true(server_core_ended(c));
    server_core_free(c);
}

/* ---- any order ---------------------------------------------------------------------------------------------------- */

enum { SERVERS = 3, STEPS = 40 };

/* asynchronous workers and servers; packets of a worker arrive in any order */
struct run {
    struct server_core *cores[SERVERS];
    int64_t pushed[SERVERS][WORKERS][PACKETS], tallied[WORKERS]; /* taken */
    int64_t applied[SERVERS][PACKETS];                           /* decisions */
    int64_t steps[WORKERS];                                      /* begun */
    int more[WORKERS];
    struct random random;
};

/* Whether this worker's present step has come to every server. */
static int step_has_come(const struct run *r, int w)
{
    for (int j = 0; j < SERVERS; j++)
        for (int k = 0; k < PACKETS; k++)
            if (r->pushed[j][w][k] < r->steps[w])
                return 0;
    return r->tallied[w] == r->steps[w];
}

/* Does what is due on all servers; server 0's decisions come at once. */
static void carry_out(struct run *r)
{
    for (int j = 0; j < SERVERS; j++)
        for (struct server_action a = due(r->cores[j]); a.kind != SERVER_NOTHING; a = due(r->cores[j])) {
            if (a.kind == SERVER_APPLY)
                r->applied[j][a.application.packet]++;
            for (int other = 1; other < SERVERS && a.kind == SERVER_RULING; other++)
                server_core_decision(r->cores[other], &a.ruling.decision);
            for (int w = 0; w < WORKERS && a.kind == SERVER_RULING; w++)
                if (server_core_verdict(r->cores[0], w))
                    r->more[w] = server_core_verdict(r->cores[0], w)->more;
        }
}

/* Delivers a random message that its server takes. 0: that one could not be. */
static int deliver(struct run *r)
{
    const int w = (int)random_below(&r->random, WORKERS), j = (int)random_below(&r->random, SERVERS);
    const size_t k = random_below(&r->random, PACKETS + 1);

    if (step_has_come(r, w)) {
        if (!r->more[w])
            return 0;
        r->steps[w]++;
    }
    if (k == PACKETS) {
        if (r->tallied[w] == r->steps[w] || !server_core_takes_tally(r->cores[0]))
            return 0;
        server_core_tally(r->cores[0], w, &part, 0, 0);
        r->tallied[w]++;
    } else {
        if (r->pushed[j][w][k] == r->steps[w] || !server_core_takes_push(r->cores[j], w, k))
            return 0;
        server_core_push(r->cores[j], w, k, 0);
        r->pushed[j][w][k]++;
    }
    carry_out(r);
    return 1;
}

/* A cut in the middle of the traffic: every server stops at the same decision. */
static void cut_somewhere(struct run *r)
{
    int64_t limit = 0;
    int frozen[SERVERS] = { 0 }, open = SERVERS;

    for (int left = SERVERS; left > 0;) {
        const int j = (int)random_below(&r->random, SERVERS);

        deliver(r);
        if (frozen[j])
            continue;
        control(r->cores[j], 0, CONTROL_FREEZE, 0);
        const struct server_action a = cut(r->cores[j], 0);
        assert_int_equal(a.kind, SERVER_COUNTS);
        limit = a.counts[0] > limit ? a.counts[0] : limit;
        frozen[j] = 1;
        left--;
    }
    for (int j = 0; j < SERVERS; j++)
        control(r->cores[j], 0, CONTROL_CUT, limit);
    for (int tries = 0; open > 0; tries++) {
        assert_true(tries < 100000);
        carry_out(r);
        for (int j = 0; j < SERVERS; j++) {
            if (!frozen[j] || cut(r->cores[j], 0).kind != SERVER_SNAPSHOT)
                continue;
            for (int k = 0; k < PACKETS; k++)
                assert_int_equal(r->applied[j][k], limit);
            frozen[j] = 0;
            open--;
        }
        deliver(r);
    }
    carry_out(r);
}

static void test_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct server_plan plan = plan_async();
        struct run r;
        int64_t all = 0;

        memset(&r, 0, sizeof r);
        random_init(&r.random, seed, RANDOM_TEST, 0, 0);
        plan.servers = SERVERS;
        plan.first_step = plan.arbiter.first_step = 0;
        plan.max_steps = plan.arbiter.max_steps = STEPS;
        for (int j = 0; j < SERVERS; j++) {
            plan.tallies = j == 0;
            r.cores[j] = core_of(plan);
        }
        for (int w = 0; w < WORKERS; w++)
            r.more[w] = 1;
        for (int idle = 0; idle < 5000; idle++) {
            if (deliver(&r))
                idle = 0;
            if (random_below(&r.random, 50) == 0 && server_core_step(r.cores[0]) < STEPS - 5)
                cut_somewhere(&r);
        }
        for (int w = 0; w < WORKERS; w++)
            all += r.steps[w];
        assert_int_equal(all, STEPS);
        assert_int_equal(server_core_step(r.cores[0]), STEPS);
        for (int j = 0; j < SERVERS; j++)
            server_core_free(r.cores[j]);
    }
}

static void test_no_memory(void **state)
{
    struct server_core *c;
    struct error e;
    int rc;

    (void)state;
    for (long n = 1;; n++) {
        calls = 0;
        fail_at = n;
        rc = server_core_new(&c, &plan_sync, &e);
        fail_at = 0;
        if (rc == OK)
            break;
        assert_int_equal(rc, ERR_NOMEM);
        assert_non_null(strstr(e.message, "no memory"));
    }
    assert_int_equal(calls, 3 + 7); /* of the core, the follower: all of them failed once */
    server_core_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_weight_first),
        cmocka_unit_test(test_verdict_together),
        cmocka_unit_test(test_last_step),
        cmocka_unit_test(test_replicas_differ),
        cmocka_unit_test(test_staleness),
        cmocka_unit_test(test_tickets),
        cmocka_unit_test(test_flags_alone),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_back),
        cmocka_unit_test(test_other_servers),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
