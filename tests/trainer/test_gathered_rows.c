/* A model with tables over threads whose rows are all-gathered: it has the bits of one rank that sees every table
 * whole. */
#include "tests/trainer/words.h"

static const struct words_scene usual = {
    .model = &words_model,
    .strategy = "mpi",
    .sparse = "all-gather",
    .optimizer = OPTIMIZER_MOMENTUM,
    .workers = 3,
    .micro_shards = 8,
    .steps = 6,
    .leave_at = WORDS_NEVER,
    .save_at = WORDS_NEVER,
    .bucket_bytes = 61440,
};

/* Of all arrays of rank 0's optimizer. *bytes, if not NULL: that rank 0 sent to rank 1 in steps. */
static uint64_t state_after(const struct words_scene *s, int64_t *bytes)
{
    struct words_actor actors[WORDS_RANKS_MAX];
    uint64_t hash;

    words_play(s, actors);
    hash = words_hash(actors[0].optimizer, EXCHANGE_HASH_SEED);
    if (bytes)
        *bytes = world_sent(actors[0].world)[1].steps;
    words_leave(s, actors);
    return hash;
}

static uint64_t state_alone(const struct words_scene *like)
{
    struct words_scene s = *like;

    s.strategy = "single";
    s.workers = 1;
    return state_after(&s, NULL);
}

static void test_one_hash(void **state)
{
    static const size_t buckets[] = { 64, 1024, 65536 };
    static const char *const hosts[] = { NULL, "abcdefgh", "aabbccdd" };

    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        for (int clipped = 0; clipped < 2; clipped++) {
            struct words_scene s = usual;
            uint64_t wanted;

            s.optimizer = (enum optimizer_kind)kind;
            s.clip_norm = clipped ? 0.05 : 0;
            wanted = state_alone(&s);
            for (s.workers = 1; s.workers <= 8; s.workers++)
                for (size_t i = 0; i < 3; i++) {
                    s.bucket_bytes = buckets[i];
                    s.hosts = hosts[i];
                    s.save_at = i ? 3 : WORDS_NEVER;
                    if (state_after(&s, NULL) != wanted)
                        fail_msg("optimizer %d, %d workers, case %zu%s", kind, s.workers, i,
                                 clipped ? ", clipped" : "");
                }
        }
}

/* Without micro-shards sums are added in the order of workers, as dense ones are. */
static void test_order_of_workers(void **state)
{
    (void)state;
    for (int workers = 2; workers <= 4; workers++) {
        struct words_scene s = usual, dense = usual;

        s.micro_shards = dense.micro_shards = 0;
        s.workers = dense.workers = workers;
        dense.sparse = "dense";
        assert_true(state_after(&s, NULL) == state_after(&dense, NULL));
    }
}

/* A step that a worker leaves is not applied, and nobody waits for its rows. */
static void test_left(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct words_scene s = usual, until = usual;

        s.leave_at = 3;
        s.leave_early = early;
        until.steps = 3;
        assert_true(state_after(&s, NULL) == state_alone(&until));
    }
}

/* Each worker sends its rows, as numbers and values, to every other one: beside the dense part, as much as that model
 * without tables would send. */
static void test_bytes(void **state)
{
    struct words_scene gathered = usual, dense = usual;
    int64_t rows, all;

    (void)state;
    gathered.workers = dense.workers = 2;
    gathered.hosts = dense.hosts = "ab";
    gathered.micro_shards = dense.micro_shards = 0;
    dense.sparse = "dense";
    state_after(&gathered, &rows);
    state_after(&dense, &all);
    /* Dense, half of the tables' elements leave to be added, and half as sums. A batch of 8 x 4 words uses less than all
     * 41 and 13 rows, in a message of 32 bytes and 4 for a row's number. */
    all -= usual.steps * (WORDS * 3 + WORDS_FEW * 5) * 4;
    assert_true(rows > all + usual.steps * 32);
    assert_true(rows <= all + usual.steps * (32 + 4 * (8 * 4 * 4) + 4 * (WORDS_FEW * 6)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_order_of_workers),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
