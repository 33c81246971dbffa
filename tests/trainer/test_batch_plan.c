/* Which images each worker has: equal batches, micro-shards for any number of workers, and what cannot be. */
#include "trainer/batch_plan.h"

#include "tests/check.h"

#include <string.h>

static struct batch_plan planned(struct batch_sizes sizes, int workers, int worker)
{
    struct batch_plan p;
    struct error e;

    if (batch_plan_make(&p, &sizes, workers, worker, &e) < 0)
        fail_msg("%s", e.message);
    return p;
}

static void equal_batches(void **state)
{
    (void)state;
    for (int worker = -1; worker < 3; worker++) {
        const struct batch_plan own = planned((struct batch_sizes){ .batch_size = 20, .synchronous = 1 }, 3, worker);
        const struct batch_plan all = planned(
            (struct batch_sizes){ .batch_size = 7, .global_batch = 60, .synchronous = 1 }, 3, worker);

        assert_memory_equal(&own, &all, sizeof own);
        assert_int_equal(own.together, 60);
        assert_int_equal(own.most, 20);
        assert_int_equal(own.unit, 20);
        assert_int_equal(own.count, worker < 0 ? 0 : 20);
        assert_int_equal(own.node_count, 0);
    }
}

/* All images once, in order; whole micro-shards of one size; the nodes are the worker's. */
static void any_number_of_workers(void **state)
{
    static const int shards[] = { 1, 3, 8, 16, 20 };

    (void)state;
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
        for (int n = 1; n <= shards[i]; n++) {
            const struct batch_sizes sizes = { .global_batch = 5 * shards[i],
                                               .micro_shards = shards[i],
                                               .synchronous = 1 };
            int64_t at = 0;
            int most = 0, leaf = 0;

            for (int worker = 0; worker < n; worker++) {
                const struct batch_plan p = planned(sizes, n, worker);

                assert_int_equal(p.together, 5 * shards[i]);
                assert_int_equal(p.unit, 5);
                assert_int_equal(p.first, at);
                assert_true(p.count > 0 && p.count % 5 == 0 && p.count <= p.most);
                assert_int_equal(p.nodes[0].first, leaf);
                for (int k = 0; k < p.node_count; k++)
                    leaf += p.nodes[k].count;
                at += p.count;
                assert_int_equal(leaf, at / 5);
                most = p.count > most ? p.count : most;
            }
            assert_int_equal(at, 5 * shards[i]);
            assert_int_equal(most, planned(sizes, n, -1).most);
        }
}

/* Batches of workers, as before there was a global one; asynchronous workers have trees of their own. */
static void batch_of_a_worker(void **state)
{
    struct batch_sizes sizes = { .batch_size = 18, .micro_shards = 6, .synchronous = 1 };
    struct batch_plan p = planned(sizes, 2, 1);

    (void)state;
    assert_int_equal(p.together, 36);
    assert_int_equal(p.unit, 6);
    assert_int_equal(p.count, 18);
    assert_int_equal(p.first, 18);
    assert_int_equal(p.node_count, 2); /* 3; 4 to 5 */
    sizes.synchronous = 0;
    p = planned(sizes, 2, 1);
    assert_int_equal(p.node_count, 1);
    assert_true(p.nodes[0].first == 0 && p.nodes[0].count == 3);
}

/* Threads share a worker's micro-shards, or have parts of their own, and do not change who has which images. */
static void threads_of_a_worker(void **state)
{
    struct batch_sizes sizes = { .batch_size = 18, .synchronous = 1, .threads = 3 };
    struct batch_plan p = planned(sizes, 2, 1), alone;
    char text[80];

    (void)state;
    assert_true(p.together == 36 && p.most == 18 && p.count == 18);
    assert_int_equal(p.unit, 6);
    assert_int_equal(p.threads, 3);
    assert_int_equal(p.node_count, 1); /* what the worker hands on is one sum */
    assert_true(p.nodes[0].first == 0 && p.nodes[0].count == 3);
    batch_plan_text(&p, 0, 2, 2, text, sizeof text);
    assert_string_equal(text, " (2 x 18, 3 threads each)");
    sizes.micro_shards = 6;
    p = planned(sizes, 2, 1);
    sizes.threads = 0;
    alone = planned(sizes, 2, 1);
    assert_int_equal(alone.threads, 1);
    alone.threads = 3;
    assert_memory_equal(&p, &alone, sizeof p);
    batch_plan_text(&p, 6, 2, 2, text, sizeof text);
    assert_string_equal(text, " (2 x 18, 6 micro-shards, 3 threads each)");
    assert_int_equal(planned((struct batch_sizes){ .batch_size = 18, .threads = 1 }, 1, 0).node_count, 0);
}

static void refused(void **state)
{
    static const struct {
        struct batch_sizes sizes;
        int workers;
        const char *sentence;
    } cases[] = {
        { { 0, 64, 0, 1, 0 }, 3, "--global-batch 64: not a multiple of the 3 workers" },
        { { 0, 60, 8, 1, 0 }, 2, "--global-batch 60: cannot be cut into 8 equal micro-shards; use a multiple of 8" },
        { { 0, 64, 8, 1, 0 }, 9, "--micro-shards 8: too few for 9 workers" },
        { { 64, 0, 8, 1, 0 }, 3, "--micro-shards 8: not a multiple of the 3 workers; with --global-batch" },
        { { 64, 0, 8, 1, 0 }, 16, "--micro-shards 8: not a multiple of the 16 workers" },
        { { 30, 0, 8, 1, 0 }, 2, "--micro-shards 8: a worker's batch of 30 images cannot be cut into 4 equal parts" },
        { { 32, 0, 0, 1, 3 },
          2,
          "--threads 3: a worker's batch of 32 cannot be cut into 3 equal parts; use a multiple" },
        { { 0, 64, 0, 1, 5 }, 4, "--threads 5: a worker's batch of 16 cannot be cut" },
        { { 0, 64, 8, 1, 3 }, 4, "--threads 3: each needs a micro-shard, but a worker has at most 2 of 8" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct batch_plan p;
        struct error e;

        assert_int_equal(batch_plan_make(&p, &cases[i].sizes, cases[i].workers, 0, &e), ERR_ARG);
        if (!strstr(e.message, cases[i].sentence))
            fail_msg("'%s' does not say '%s'", e.message, cases[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_batches),     cmocka_unit_test(any_number_of_workers),
        cmocka_unit_test(batch_of_a_worker), cmocka_unit_test(threads_of_a_worker),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
