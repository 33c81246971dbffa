/* A model with tables over threads: parameter servers send and update its rows alone, with the bits of one rank that
 * sees every table whole, and the bytes of the specification of the strategies, 8.1 (a) and (b). */
#include "tests/trainer/words.h"
#include "trainer/server/placement.h"
#include "trainer/server/row_packet.h"
#include "trainer/server/verdict.h"

static const struct words_scene usual = {
    .model = &words_model,
    .strategy = "ps",
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
    static const int workers[] = { 1, 2, 3, 4, 5, 8 };

    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct words_scene s = usual;
        uint64_t wanted;

        s.optimizer = (enum optimizer_kind)kind;
        wanted = state_alone(&s);
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
            for (s.servers = 1; s.servers <= 3; s.servers++) {
                s.workers = workers[w];
                s.bucket_bytes = buckets[(w + (size_t)s.servers) % 3];
                if (state_after(&s) != wanted)
                    fail_msg("optimizer %d, %d workers, %d servers", kind, s.workers, s.servers);
            }
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

/* Asynchronous: a worker alone never waits for others, so its bits are those of one rank, with a checkpoint in between
 * or not. */
static void test_async_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        for (int servers = 1; servers <= 3; servers++) {
            struct words_scene s = usual;

            s.optimizer = (enum optimizer_kind)kind;
            s.async = 1;
            s.workers = 1;
            s.micro_shards = 0;
            s.servers = servers;
            s.save_at = servers == 2 ? 3 : WORDS_NEVER;
            if (state_after(&s) != state_alone(&s))
                fail_msg("optimizer %d, %d servers", kind, servers);
        }
}

/* Workers that wait for nobody end together at the last step, and a checkpoint in between stops none of them. */
static void test_async(void **state)
{
    struct words_actor actors[WORDS_RANKS_MAX];

    (void)state;
    for (int servers = 1; servers <= 2; servers++) {
        struct words_scene s = usual;

        s.async = 1;
        s.micro_shards = 0;
        s.workers = 4;
        s.steps = 40;
        s.servers = servers;
        s.save_at = 10;
        words_play(&s, actors);
        assert_int_equal(actors[0].last_step, s.steps);
        words_leave(&s, actors);
    }
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* The ids that this worker looks up in a step: of each server's rows; and the reals in those rows. */
static void count_rows(struct words_actor *a, int64_t step, const struct table_parts *p, int64_t *ids, int64_t *reals)
{
    const struct batch batch = words_batch(a, step);
    char used[WORDS] = { 0 };

    for (size_t i = 0; i < (size_t)batch.count * WORDS_LENGTH; i++)
        used[field_integer(&batch.fields[FIELD_INPUT], i)] = 1;
    for (size_t t = 0; t < p->table_count; t++)
        for (int32_t row = 0; row < p->tables[t].rows && row < WORDS; row++)
            if (used[row]) {
                const int server = table_parts_find(p, p->tables[t].first + row)->server;

                ids[server]++;
                reals[server] += (int64_t)p->tables[t].width;
            }
}

/* A row's index is 4 bytes. Pull: u index out, u w in; push: u (w + index) out; and the heads of messages. */
static void check_bytes(const struct words_scene *s)
{
    enum { HEAD = sizeof(struct row_packet_head), PART = sizeof(struct row_packet_part), REAL = sizeof(real) };
    struct words_actor actors[WORDS_RANKS_MAX];
    struct table_parts parts;
    struct placement placement;
    size_t held = 0;

    words_play(s, actors);
    assert_int_equal(table_parts_make(&parts, actors[0].network, s->servers, s->servers, NULL), OK);
    assert_int_equal(placement_of(&placement, actors[0].network, s->servers, 1, NULL), OK);
    for (int j = 0; j < s->servers; j++)
        held += placement.held[j];
    for (size_t t = 0; t < parts.table_count; t++) /* which are not in packets */
        held += (size_t)parts.tables[t].rows * parts.tables[t].width;
    assert_int_equal(held, network_parameter_count(actors[0].network));
    for (int w = 0; w < s->workers; w++) {
        int64_t ids[WORDS_RANKS_MAX] = { 0 }, reals[WORDS_RANKS_MAX] = { 0 };

        for (int64_t step = 0; step < s->steps; step++)
            count_rows(&actors[w], step, &parts, ids, reals);
        for (int j = 0; j < s->servers; j++) {
            const int64_t dense = s->steps * (int64_t)placement.held[j] * REAL;
            const int64_t ends = s->steps * (j == 0), step_heads = s->steps * (2 * HEAD + PART);
            const int64_t pushed = dense + s->steps * REAL + ends * (int64_t)sizeof(struct tally_part) + step_heads +
                                   ids[j] * 4 + ids[j] * 4 + reals[j] * REAL;
            const int64_t pulled = dense + 2 * s->steps * REAL + ends * (int64_t)sizeof(struct verdict) +
                                   s->steps * HEAD + reals[j] * REAL;

            assert_true(ids[j] > 0);
            assert_int_equal(world_sent(actors[w].world)[s->workers + j].steps, pushed);
            assert_int_equal(world_sent(actors[s->workers + j].world)[w].steps, pulled);
        }
    }
    placement_release(&placement);
    table_parts_release(&parts);
    words_leave(s, actors);
}

static void test_bytes(void **state)
{
    (void)state;
    for (int async = 0; async < 2; async++)
        for (int servers = 1; servers <= 3; servers++) {
            struct words_scene s = usual;

            s.async = async;
            s.workers = async ? 1 : 3;
            s.micro_shards = 0;
            s.servers = servers;
            check_bytes(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash), cmocka_unit_test(test_left),  cmocka_unit_test(test_async_alone),
        cmocka_unit_test(test_async),    cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
