/* --clip-norm over threads where no rank has the whole gradient: a model with tables and weight decay, trained with
 * parameter servers or hybrid, has the bits of one rank that clips all of it, and the bytes that strategies.md says. */
#include "tests/trainer/words.h"
#include "trainer/optimizers/gradient_norm.h"
#include "trainer/server/partition_search.h"
#include "trainer/server/placement.h"
#include "trainer/server/table_parts.h"
#include "trainer/server/verdict.h"

static const struct kernel_options decayed = { INITIAL_NORMAL, 0.5, 0.05 };

static int build_decayed(struct network_builder *b, struct error *e)
{
    const int in = network_builder_images(b);
    int x = network_builder_embedding(b, in, "table", WORDS, 3, &decayed), y;

    (void)e;
    x = network_builder_convolution(b, x, "kernel", 5, window_same(3, 1), &decayed);
    y = network_builder_embedding(b, in, "few", WORDS_FEW, 5, &words_plain);
    x = network_builder_add(b, x, y);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", 3, &decayed));
    return OK;
}

static const struct model decayed_model = {
    .name = "decayed words",
    .height = 1,
    .width = WORDS_LENGTH,
    .channels = 1,
    .classes = 3,
    .integers = 1,
    .build = build_decayed,
};

static const struct words_scene usual = {
    .model = &decayed_model,
    .strategy = "ps",
    .reduce = "mean",
    .optimizer = OPTIMIZER_MOMENTUM,
    .workers = 3,
    .servers = 1,
    .micro_shards = 8,
    .steps = 6,
    .clip_norm = 0.4,
    .leave_at = WORDS_NEVER,
    .save_at = WORDS_NEVER,
    .bucket_bytes = 64,
};

/* Of all arrays of rank 0's optimizer, and of the norm before clipping that it reports. */
static uint64_t state_after(const struct words_scene *s)
{
    struct words_actor actors[WORDS_RANKS_MAX];
    uint64_t hash = EXCHANGE_HASH_SEED;
    struct strategy_report report;
    float norm;

    words_play(s, actors);
    actors[0].strategy->operations->report(actors[0].strategy, &report);
    norm = (float)report.gradient_norm;
    assert_true(norm > s->clip_norm && norm < 100);
    if (s->leave_at == WORDS_NEVER) /* else some know that of the abandoned step */
        hash = exchange_hash(&norm, sizeof norm, hash);
    hash = words_hash(actors[0].optimizer, hash);
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
    static const char *const strategies[] = { "ps", "hybrid" }, *const partitions[] = { NULL, "7", "100" };
    static const int workers[] = { 1, 2, 3, 5, 8 };

    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        struct words_scene s = usual;
        uint64_t wanted;

        s.optimizer = (enum optimizer_kind)kind;
        wanted = state_alone(&s);
        for (size_t w = 0; w < sizeof workers / sizeof *workers; w++)
            for (int i = 0; i < 2; i++)
                for (s.servers = 1; s.servers <= 3; s.servers++) {
                    s.strategy = strategies[i];
                    s.partitions = i ? partitions[(w + (size_t)s.servers) % 3] : NULL;
                    s.workers = workers[w];
                    if (state_after(&s) != wanted)
                        fail_msg("optimizer %d, %s, %d workers, %d servers", kind, s.strategy, s.workers, s.servers);
                }
    }
}

/* Workers of a host exchange rows together; the tables are cut anew while training runs. */
static void test_hosts_and_search(void **state)
{
    static const char *const hosts[] = { "aabbss", "abbass", "aaaass" };
    struct words_scene s = usual;
    uint64_t wanted;

    (void)state;
    s.clip_norm = 0.05; /* gradients become small */
    s.steps = PARTITION_SEARCH_BEFORE + 2 * PARTITION_SEARCH_STEPS + 2;
    wanted = state_alone(&s);
    s.strategy = "hybrid";
    s.partitions = "search";
    s.workers = 4;
    s.servers = 2;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        s.hosts = hosts[i];
        assert_true(state_after(&s) == wanted);
    }
}

/* A step that a worker leaves, with or without having fetched rows, is applied nowhere, and nobody waits for its norm. */
static void test_left(void **state)
{
    static const char *const strategies[] = { "ps", "hybrid", "hybrid" }, *const hosts[] = { NULL, NULL, "aabss" };

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int early = 0; early < 2; early++) {
            struct words_scene s = usual, until = usual;

            s.strategy = strategies[i];
            s.hosts = hosts[i];
            s.servers = 2;
            s.leave_at = 3;
            until.steps = 3;
            s.leave_early = early;
            s.save_at = 2;
            until.leave_at = 3; /* its norm is not compared either */
            assert_true(state_after(&s) == state_alone(&until));
        }
}

/* An asynchronous push is clipped by its own norm: of a worker alone, that is the gradient of the update. */
static void test_async_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        for (int servers = 1; servers <= 3; servers++) {
            struct words_scene s = usual;

            s.model = &words_model;
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

enum { REAL = sizeof(real), DOUBLE = sizeof(double) };

/* How much more a rank sends to another one than without clipping. */
static int64_t more_sent(const struct words_scene *s, int from, int to)
{
    struct words_actor actors[WORDS_RANKS_MAX];
    struct words_scene plain = *s;
    int64_t bytes[2];

    plain.clip_norm = 0;
    for (int clipped = 0; clipped < 2; clipped++) {
        words_play(clipped ? s : &plain, actors);
        bytes[clipped] = world_sent(actors[from].world)[to].steps;
        words_leave(s, actors);
    }
    return bytes[1] - bytes[0];
}

/* The sums of a server: of its dense part (ps), and of its rows. */
static int64_t sums_of(const struct words_scene *s, int server)
{
    struct gradient_part held[64];
    struct gradient_parts parts;
    struct table_parts tables;
    struct placement placement;
    struct network *n;
    int64_t sums;
    size_t count;

    assert_int_equal(network_new(&n, s->model, 0, NULL), OK);
    assert_int_equal(table_parts_make(&tables, n, s->servers, s->servers, NULL), OK);
    assert_int_equal(placement_of(&placement, n, s->servers, 1, NULL), OK);
    count = tables.count;
    assert_true(count + placement.count <= 64);
    table_parts_held(&tables, held);
    for (size_t i = 0; i < placement.count && !strcmp(s->strategy, "ps"); i++)
        held[count++] = (struct gradient_part){ .from = placement.items[i].extent.from,
                                                .to = placement.items[i].extent.to,
                                                .holder = placement.items[i].server };
    assert_int_equal(gradient_parts_init(&parts, n, held, count, s->servers, NULL), OK);
    sums = (int64_t)parts.sums[server];
    gradient_parts_release(&parts);
    placement_release(&placement);
    table_parts_release(&tables);
    network_free(n);
    return sums;
}

static void test_bytes(void **state)
{
    struct words_scene s = usual;

    (void)state;
    s.micro_shards = 0;
    s.servers = 3;
    for (int j = 0; j < s.servers; j++) /* to another server: the step, and its sums; to a worker: the norm */
        assert_int_equal(more_sent(&s, s.workers + j, s.workers + (j + 1) % 3),
                         s.steps * (1 + sums_of(&s, j)) * DOUBLE);
    assert_int_equal(more_sent(&s, s.workers, 0), s.steps * REAL);
    assert_int_equal(more_sent(&s, 0, s.workers), 0);
    s.strategy = "hybrid";
    s.partitions = "3";
    for (int j = 0; j < s.servers; j++) /* to a worker: the same; the worker: the norm with the rows that it asks for */
        assert_int_equal(more_sent(&s, s.workers + j, 1), s.steps * (1 + sums_of(&s, j)) * DOUBLE);
    assert_int_equal(more_sent(&s, 1, s.workers), s.steps * DOUBLE);
    assert_int_equal(more_sent(&s, s.workers, s.workers + 1), 0);
    s.strategy = "ps";
    s.async = 1;
    s.workers = 1;
    assert_int_equal(more_sent(&s, 0, s.workers), s.steps * REAL); /* the factor */
    assert_int_equal(more_sent(&s, s.workers, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hash), cmocka_unit_test(test_hosts_and_search),
        cmocka_unit_test(test_left),     cmocka_unit_test(test_async_alone),
        cmocka_unit_test(test_async),    cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
