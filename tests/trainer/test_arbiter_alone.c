/* The same for asynchronous pushes, also in random orders; and the order of a record, for both. */
#include "base/random.h"
#include "tests/trainer/arbiters.h"

/* ---- asynchronous ------------------------------------------------------------------------------------------------ */

static void test_each_alone(void **state)
{
    struct arbiter *a = arbiter_of(alone);
    struct tally_part bad = part_of(2, TALLY_BAD);
    const struct verdict *v;
    struct ruling r;

    (void)state;
    push(a, 1);
    push(a, 0);
    assert_string_equal(next(a, &r), ". u! . ."); /* as they came */
    assert_string_equal(next(a, &r), "u! . . .");
    assert_int_equal(r.decision.step, FIRST + 1);
    assert_int_equal(r.decision.number, 1);
    assert_memory_equal(&r.pushes[0], &((struct arrival){ 1, 0, 0 }), sizeof *r.pushes);
    v = arbiter_verdict(a, 0);
    assert_true(v->score.loss == 1);
    assert_int_equal(v->global_step, FIRST + 2);
    assert_int_equal(v->used, 1);
    assert_int_equal(v->values, 1);
    assert_int_equal(v->other, -1);
    assert_int_equal(v->staleness_max, 1);
    assert_true(v->staleness_mean == 0.5);
    expect(a, "");
    arbiter_push(a, 2, &bad);
    assert_string_equal(next(a, &r), ". . u! .");
    assert_int_equal(arbiter_verdict(a, 2)->flags, TALLY_BAD);
    assert_int_equal(arbiter_verdict(a, 2)->more, 0);
    assert_int_equal(arbiter_statistics(a)->staleness.pushes, 3);
    assert_int_equal(arbiter_statistics(a)->used, 3);
    assert_int_equal(arbiter_statistics(a)->absent, 0);
    assert_true(arbiter_statistics(a)->samples == 24);
    arbiter_free(a);
}

static void test_bounded(void **state)
{
    struct arbiter_plan plan = alone;
    struct arbiter *a;
    struct ruling r;

    (void)state;
    plan.staleness = 1;
    a = arbiter_of(plan);
    push(a, 0);
    expect(a, "u! . . ."); /* one ahead */
    push(a, 0);
    expect(a, "u . . ."); /* not two: it waits */
    assert_false(arbiter_expects(a, 0));
    push(a, 1);
    expect(a, ". u! . .");
    push(a, 2);
    expect(a, ". . u! .");
    push(a, 3);
    assert_string_equal(next(a, &r), "! . . u!");                    /* the slowest has made a step */
    assert_int_equal(arbiter_verdict(a, 0)->global_step, FIRST + 2); /* of its own push */
    expect(a, "");
    push(a, 0);
    expect(a, "u . . .");
    arbiter_done(a, 3, 0); /* who leaves holds nobody up */
    expect(a, "");
    push(a, 1);
    expect(a, ". u! . .");
    push(a, 2);
    expect(a, "! . u! .");
    push(a, 0);
    expect(a, "u . . .");
    push(a, 1);
    expect(a, ". u! . .");
    arbiter_done(a, 2, TALLY_INT);
    assert_string_equal(next(a, &r), "! . . . =");
    assert_int_equal(arbiter_verdict(a, 0)->flags, TALLY_INT);
    assert_int_equal(arbiter_verdict(a, 0)->more, 0);
    arbiter_free(a);
}

/* Workers push at random: the bound holds, there are exactly as many pushes as steps, and all end. */
static void test_random_bounded(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct arbiter_plan plan = alone;
        int more[WORKERS] = { 1, 1, 1, 1 }, waits[WORKERS] = { 0 };
        int64_t begun[WORKERS] = { 1, 1, 1, 1 }, finished[WORKERS] = { 0 }, all = 0;
        struct random random;
        struct arbiter *a;
        struct ruling r;

        random_init(&random, seed, RANDOM_TEST, 0, 0);
        plan.staleness = (int64_t)(seed % 4) - 1;
        plan.max_steps = FIRST + 1 + (int64_t)random_below(&random, 60);
        for (int w = 0; w < WORKERS; w++)
            more[w] = FIRST + w < plan.max_steps;
        a = arbiter_of(plan);
        for (int w = 0; w < WORKERS; w++)
            if (!more[w])
                arbiter_done(a, w, 0);
        for (int idle = 0; idle < 1000; idle++) {
            const int w = (int)random_below(&random, WORKERS);

            if (more[w] && !waits[w]) {
                push(a, w);
                waits[w] = 1;
                finished[w]++;
                all++;
                idle = 0;
            }
            while (arbiter_next(a, &r, NULL) == 1)
                for (int i = 0; i < WORKERS; i++) {
                    const struct verdict *v = arbiter_verdict(a, i);

                    assert_int_equal(v != NULL, (r.decision.fates[i] & DECISION_ANSWERED) != 0);
                    if (!v)
                        continue;
                    assert_true(waits[i]);
                    waits[i] = 0;
                    more[i] = v->more;
                    begun[i] += more[i];
                    for (int k = 0; k < WORKERS && more[i] && plan.staleness >= 0; k++)
                        assert_true(!more[k] || finished[k] >= begun[i] - 1 - plan.staleness);
                }
        }
        assert_int_equal(all, plan.max_steps - FIRST);
        assert_int_equal(arbiter_step(a), plan.max_steps);
        assert_int_equal(arbiter_statistics(a)->staleness.pushes, all);
        for (int w = 0; w < WORKERS; w++)
            assert_false(more[w] || waits[w]);
        arbiter_free(a);
    }
}

/* ---- the order of a record --------------------------------------------------------------------------------------- */

enum { PUSHES_MOST = 4000 };

/* a run of workers that push at random, until all have ended */
struct history {
    struct arrival pushes[PUSHES_MOST];
    size_t count;
    char rulings[200][80]; /* with a decision */
    int ruled;
    int64_t dropped;
};

static void live(struct history *h, const struct arbiter_plan *plan, uint64_t seed)
{
    struct arbiter *a = arbiter_of(*plan);
    int more[WORKERS] = { 1, 1, 1, 1 }, waits[WORKERS] = { 0 };
    struct random random;
    struct ruling r;
    const char *said;

    memset(h, 0, sizeof *h);
    random_init(&random, seed, RANDOM_TEST, 1, 0);
    for (int w = 0; w < WORKERS && !plan->synchronous; w++)
        if (!(more[w] = plan->replay || FIRST + w < plan->max_steps))
            arbiter_done(a, w, 0);
    for (int idle = 0; idle < 2000; idle++) {
        const int w = (int)random_below(&random, WORKERS);

        /* worker 3 is slow */
        if (more[w] && !waits[w] && (w < 3 || random_below(&random, 6) == 0)) {
            push(a, w);
            waits[w] = 1;
            idle = 0;
        }
        for (int go = random_below(&random, 3) == 0; go;) { /* else others come first */
            said = next(a, &r);
            go = *said != 0;
            for (int i = 0; i < WORKERS && go; i++)
                if (arbiter_verdict(a, i)) {
                    waits[i] = 0;
                    more[i] = arbiter_verdict(a, i)->more;
                }
            if (!go || !r.decides)
                continue;
            assert_true(h->ruled < 200);
            snprintf(h->rulings[h->ruled++], sizeof *h->rulings, "%s", said);
            memcpy(h->pushes + h->count, r.pushes, r.push_count * sizeof *r.pushes);
            h->count += r.push_count;
        }
    }
    h->dropped = arbiter_statistics(a)->dropped;
    for (int w = 0; w < WORKERS; w++)
        assert_false(more[w] || waits[w]);
    assert_int_equal(arbiter_step(a), plan->max_steps);
    arbiter_free(a);
}

/* Whatever the order in which they come, pushes are decided about as in the record. */
static void test_replay(void **state)
{
    static struct history recorded, repeated;

    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct arbiter_plan plan = seed % 2 ? alone : together;
        struct arrivals record = { 0 };

        if (plan.synchronous) {
            plan.aggregate = 1 + (int)(seed / 2 % WORKERS);
        } else {
            plan.staleness = (int64_t)(seed / 2 % 4) - 1;
        }
        plan.max_steps = FIRST + 1 + (int64_t)(seed * 7 % 31);
        live(&recorded, &plan, seed);
        record.items = recorded.pushes;
        record.count = recorded.count;
        plan.replay = &record;
        live(&repeated, &plan, seed + 1000);
        assert_int_equal(repeated.count, recorded.count);
        assert_memory_equal(repeated.pushes, recorded.pushes, recorded.count * sizeof *recorded.pushes);
        for (int i = 0; i < recorded.ruled && plan.synchronous; i++)
            assert_string_equal(repeated.rulings[i], recorded.rulings[i]);
        /* Of a run of fewer steps the record has a part. */
        plan.max_steps -= (int64_t)(seed % 5) < plan.max_steps - FIRST ? (int64_t)(seed % 5) : 0;
        live(&repeated, &plan, seed + 2000);
        assert_true(repeated.count <= recorded.count);
        assert_memory_equal(repeated.pushes, recorded.pushes, repeated.count * sizeof *recorded.pushes);
    }
}

/* Whoever is asked to end leaves; the others end at their next push, since that of the record may never come. */
static void test_replay_ended(void **state)
{
    struct arrival items[] = { { 0, 1, 0 }, { 1, 2, 0 }, { 2, 0, 0 }, { 3, 1, 1 } };
    const struct arrivals record = { .items = items, .count = 4 };
    struct arbiter_plan plan = alone;
    struct arbiter *a;
    struct ruling r;

    (void)state;
    plan.replay = &record;
    plan.max_steps = FIRST + 4;
    a = arbiter_of(plan);
    push(a, 0);
    expect(a, ""); /* not its turn */
    push(a, 1);
    expect(a, ". u! . .");
    assert_int_equal(arbiter_verdict(a, 1)->more, 1);
    arbiter_done(a, 2, TALLY_TERM);
    assert_string_equal(next(a, &r), "v . . .");
    assert_int_equal(arbiter_verdict(a, 0)->values, 0);
    assert_int_equal(arbiter_verdict(a, 0)->more, 0);
    assert_int_equal(arbiter_verdict(a, 0)->dropped, 1);
    assert_int_equal(arbiter_verdict(a, 0)->flags, TALLY_TERM);
    push(a, 1);
    expect(a, ". v . .");
    expect(a, "");
    assert_int_equal(arbiter_step(a), FIRST + 1);
    arbiter_free(a);
}

static void test_replay_of_another(void **state)
{
    struct arrival items[] = { { 0, 1, 0 }, { 1, 1, 0 } };
    struct arrivals record = { .items = items, .count = 2 };
    struct arbiter_plan plan = alone;
    struct arbiter *a;
    struct ruling r;
    struct error e;

    (void)state;
    plan.replay = &record;
    a = arbiter_of(plan);
    push(a, 0);
    expect(a, "v . . ."); /* it made none */
    push(a, 1);
    expect(a, ". u! . .");
    push(a, 1); /* from the weights after one push, not none */
    assert_int_equal(arbiter_next(a, &r, &e), ERR_CORRUPT);
    assert_string_equal(e.message,
                        "at step 11 the weights of worker 1 are those of step 11, but the record of --replay "
                        "says 10");
    arbiter_free(a);

    record.count = 1;
    a = arbiter_of(plan);
    push(a, 1);
    expect(a, ". u! . .");
    assert_int_equal(arbiter_next(a, &r, &e), ERR_CORRUPT);
    assert_string_equal(e.message, "the record of --replay ends at step 11");
    arbiter_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_alone),        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_random_bounded),    cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_of_another), cmocka_unit_test(test_replay_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
