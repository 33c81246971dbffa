/* A model with tables over threads: hybrid has the bits of one rank that sees every table whole. */
#include "tests/trainer/words.h"
#include "trainer/server/partition_search.h"

static const struct words_scene usual = {
    .model = &words_model,
    .strategy = "hybrid",
    .reduce = "mean",
    .optimizer = OPTIMIZER_MOMENTUM,
    .workers = 3,
    .servers = 1,
    .micro_shards = 8,
    .steps = 6,
    .leave_at = WORDS_NEVER,
    .save_at = WORDS_NEVER,
    .bucket_bytes = 61440,
};

/* Of all arrays of rank 0's optimizer. */
static uint64_t state_after(const struct words_scene *s)
{
    struct words_actor actors[WORDS_RANKS_MAX];
    uint64_t hash;

    words_play(s, actors);
    hash = words_hash(actors[0].optimizer, EXCHANGE_HASH_SEED);
    words_leave(s, actors);
    return hash;
}

static uint64_t state_alone(const struct words_scene *like)
{
    struct words_scene s = *like;

    s.strategy = "single";
    s.workers = 1;
    s.servers = 0;
    return state_after(&s);
}

static void test_one_hash(void **state)
{
    static const size_t buckets[] = { 64, 1024, 65536 };
    static const char *const partitions[] = { NULL, "1", "2", "5" };
    static const int workers[] = { 1, 2, 3, 4, 5, 8 };

    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct words_scene s = usual;
        uint64_t wanted;

        s.optimizer = (enum optimizer_kind)kind;
        wanted = state_alone(&s);
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
            for (s.servers = 1; s.servers <= 3; s.servers++)
                for (size_t p = 0; p < sizeof partitions / sizeof *partitions; p++) {
                    s.workers = workers[w];
                    s.partitions = partitions[p];
                    s.bucket_bytes = buckets[(w + p) % 3];
                    if (state_after(&s) != wanted)
                        fail_msg("optimizer %d, %d workers, %d servers, %s parts", kind, s.workers, s.servers,
                                 s.partitions ? s.partitions : "default");
                }
    }
}

/* Workers of a host that exchange rows together: whichever they are, and whether or not they are a whole part of the
 * tree. */
static void test_one_hash_by_host(void **state)
{
    static const char *const hosts[] = { "aabbs",   "abbas",   "aaabs",   "ababs", "aaaaa",
                                         "aaaabbb", "abcabcs", "aabbccs", "abaas", "aabb" };

    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct words_scene s = usual;
        uint64_t wanted;

        s.optimizer = (enum optimizer_kind)kind;
        wanted = state_alone(&s);
        for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
            for (s.servers = 1; s.servers <= 2; s.servers++) {
                s.hosts = hosts[i];
                s.workers = (int)strlen(hosts[i]) - s.servers;
                if (state_after(&s) != wanted)
                    fail_msg("optimizer %d, hosts %s, %d servers", kind, hosts[i], s.servers);
            }
    }
}

/* What is tried before the first step changes nothing, and its messages are not of steps: weights, slots, averages and
 * bytes are those of the number that was found, given by hand; also if a worker leaves the first step. */
static void test_one_hash_searched(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * OPTIMIZER_KINDS; i++) {
        struct words_scene s = usual;
        struct words_actor actors[WORDS_RANKS_MAX];
        struct strategy_report report;
        char number[16];
        uint64_t found;
        int64_t sent;

        s.optimizer = (enum optimizer_kind)(i / 4);
        s.servers = 2 + i % 2;
        s.hosts = i % 2 ? "aabsss" : NULL;
        s.clip_norm = i % 4 == 2 ? 0.1 : 0;
        s.leave_at = i % 4 == 3 ? 0 : WORDS_NEVER;
        s.leave_early = 1;
        s.save_at = 3;
        s.partitions = "search";
        words_play(&s, actors);
        actors[0].strategy->operations->report(actors[0].strategy, &report);
        assert_true(report.parts.count >= 3 && report.parts.tried[1].partitions == 2 * s.servers);
        found = words_hash(actors[0].optimizer, EXCHANGE_HASH_SEED);
        sent = traffic_of_rank(&actors[0].traffic, 0).sent;
        words_leave(&s, actors);

        snprintf(number, sizeof number, "%d", report.parts.partitions);
        s.partitions = number;
        words_play(&s, actors);
        actors[0].strategy->operations->report(actors[0].strategy, &report);
        assert_int_equal(report.parts.count, 0);
        assert_true(words_hash(actors[0].optimizer, EXCHANGE_HASH_SEED) == found);
        assert_int_equal(traffic_of_rank(&actors[0].traffic, 0).sent, sent);
        words_leave(&s, actors);
    }
}

/* Any worker of a host, also the one that speaks for it, may leave a step. */
static void test_left_by_host(void **state)
{
    static const char *const hosts[] = { "aabbs", "abbas", "babas" };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        for (int early = 0; early < 2; early++) {
            struct words_scene s = usual, until = usual;

            s.workers = 4;
            s.hosts = hosts[i];
            s.leave_at = 3;
            s.leave_early = early;
            until.steps = 3;
            assert_true(state_after(&s) == state_alone(&until));
        }
}

/* A step that a worker leaves is not applied to tables either, also after a checkpoint in between. */
static void test_left(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 2; servers++)
        for (int save = 0; save < 2; save++) {
            struct words_scene s = usual, until = usual;

            s.servers = servers;
            s.leave_at = 3;
            s.save_at = save ? 2 : WORDS_NEVER;
            until.steps = 3;
            assert_true(state_after(&s) == state_alone(&until));
        }
}

/* Without micro-shards sums are added in the order of workers, as with any other strategy. */
static void test_order_of_workers(void **state)
{
    (void)state;
    for (int workers = 2; workers <= 4; workers++) {
        struct words_scene s = usual, dense = usual;

        s.micro_shards = dense.micro_shards = 0;
        s.workers = dense.workers = workers;
        s.servers = 2;
        dense.strategy = "mpi";
        dense.servers = 0;
        assert_true(state_after(&s) == state_after(&dense));
    }
}

/* Every rule trains, each in its own way; with one worker all are the same. */
static void test_rules(void **state)
{
    static const char *const rules[] = { "mean", "sum", "mean-touching" };
    uint64_t hashes[3];

    (void)state;
    for (int workers = 1; workers <= 2; workers++) {
        struct words_scene s = usual;

        s.workers = workers;
        for (size_t i = 0; i < 3; i++) {
            s.reduce = rules[i];
            hashes[i] = state_after(&s);
        }
        assert_int_equal(hashes[0] == hashes[1], workers == 1);
        assert_int_equal(hashes[0] == hashes[2], workers == 1);
        assert_int_equal(hashes[1] == hashes[2], workers == 1);
    }
}

/* The rows of the next batch are asked for before the step is complete. That this step is the last one, or is left, may
 * only be known later: then the answers are taken, or do not come. */
static void test_foreseen(void **state)
{
    int64_t sent[2];

    (void)state;
    for (int end = 0; end < 2; end++) {
        struct words_scene s = usual;
        struct words_actor actors[WORDS_RANKS_MAX];

        s.steps = 2;
        s.servers = 2;
        s.foresees_end = end;
        assert_true(state_after(&s) == state_alone(&s));
        words_play(&s, actors);
        sent[end] = traffic_of_rank(&actors[0].traffic, 0).sent;
        words_leave(&s, actors);
    }
    assert_true(sent[1] > sent[0]);
    for (int i = 2; i < 8; i++) {
        const int step = i / 2;
        struct words_scene s = usual, until = usual;

        s.foresees_end = 1;
        s.leave_at = step;
        s.leave_early = i % 2; /* worker 1 has asked, and does not fetch */
        s.steps = step + 1;
        until.steps = step;
        assert_true(state_after(&s) == state_alone(&until));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash),          cmocka_unit_test(test_one_hash_by_host),
        cmocka_unit_test(test_one_hash_searched), cmocka_unit_test(test_foreseen),
        cmocka_unit_test(test_left_by_host),      cmocka_unit_test(test_left),
        cmocka_unit_test(test_order_of_workers),  cmocka_unit_test(test_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
