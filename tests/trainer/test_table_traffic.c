/*
 * The bytes between workers and a server of tables, exactly (strategies, 8.1 (d)): what leaves a host are the rows that
 * its workers use, each once, however many of them use it.
 */
#include "tests/trainer/words.h"
#include "trainer/server/row_packet.h"
#include "trainer/server/table_groups.h"

static const struct words_scene usual = {
    .model = &words_model,
    .strategy = "hybrid",
    .reduce = "mean",
    .optimizer = OPTIMIZER_MOMENTUM,
    .workers = 4,
    .servers = 1,
    .micro_shards = 8,
    .steps = 5,
    .leave_at = WORDS_NEVER,
    .save_at = WORDS_NEVER,
    .bucket_bytes = 61440,
};

/* What some samples use. */
struct used {
    char tokens[WORDS];
    int64_t rows, reals;
};

/* Samples [from, to) of a step, in addition. */
static void use(struct used *u, int64_t step, int from, int to)
{
    static const struct words_scene all = { .workers = 1 };
    struct words_actor alone = { .scene = &all };

    words_batch(&alone, step);
    for (int i = from * WORDS_LENGTH; i < to * WORDS_LENGTH; i++) {
        const int32_t token = alone.tokens[step % 2][i];

        if (u->tokens[token])
            continue;
        u->tokens[token] = 1;
        u->rows += 1 + (token < WORDS_FEW);
        u->reals += 3 + (token < WORDS_FEW ? 5 : 0);
    }
}

static int64_t aligned(int64_t bytes)
{
    const int64_t real_size = (int64_t)sizeof(real);

    return (bytes + real_size - 1) / real_size * real_size;
}

/* What group k sends to the server in this step, and gets. */
static struct traffic_link wanted_of(const struct words_scene *s, const struct table_groups *g, int k, int64_t step)
{
    const int64_t head = sizeof(struct row_packet_head), part = sizeof(struct row_packet_part);
    const int sums = table_groups_vectors(g, k);
    struct traffic_link link = { 0 };
    struct used all = { 0 };
    int64_t rows = 0, reals = 0;

    for (int w = 0; w < s->workers; w++) {
        struct words_scene own = *s;
        struct words_actor worker = { .scene = &own, .rank = w };
        const struct batch batch = words_batch(&worker, step);
        const int first = (int)(batch.samples[0] - step * WORDS_GLOBAL);

        if (g->of[w] == k)
            use(&all, step, first, first + batch.count);
    }
    for (int i = g->vectors[k]; i < g->vectors[k + 1] && s->micro_shards; i++) {
        const struct tree_node node = g->pushed.nodes[g->place[i]];
        const int samples = WORDS_GLOBAL / s->micro_shards;
        struct used u = { 0 };

        use(&u, step, node.first * samples, (node.first + node.count) * samples);
        rows += u.rows;
        reals += u.reals;
    }
    link.sent = head + 4 * all.rows;
    link.received = head + all.reals * (int64_t)sizeof(real);
    if (!s->micro_shards) {
        rows = all.rows;
        reals = all.reals;
    }
    link.sent += aligned(head + part * sums + 4 * rows) + reals * (int64_t)sizeof(real);
    return link;
}

static void check(const struct words_scene *s, const char *numbers)
{
    struct words_actor actors[WORDS_RANKS_MAX];
    struct traffic_link server, wanted = { 0 };
    struct reduction reduction;
    struct table_groups groups;
    int host[WORDS_RANKS_MAX];

    for (int w = 0; w < s->workers; w++)
        host[w] = numbers[w] - '0';
    assert_int_equal(reduction_init(&reduction, s->workers, s->micro_shards, NULL), OK);
    assert_int_equal(table_groups_init(&groups, &reduction, host, NULL), OK);
    words_play(s, actors);
    for (int64_t step = 0; step < s->steps; step++)
        for (int k = 0; k < groups.count; k++) {
            const struct traffic_link link = wanted_of(s, &groups, k, step);

            wanted.sent += link.sent;
            wanted.received += link.received;
        }
    server = traffic_of_rank(&actors[0].traffic, s->workers);
    assert_int_equal(server.received, wanted.sent);
    assert_int_equal(server.sent, wanted.received);
    words_leave(s, actors);
    table_groups_release(&groups);
    reduction_release(&reduction);
}

static void test_bytes(void **state)
{
    static const struct {
        const char *hosts, *numbers;
    } cases[] = { { "aabbs", "0011" }, { "abcds", "0123" }, { "aaabs", "0001" },
                  { "ababs", "0101" }, { "aaaas", "0000" }, { "abbas", "0110" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int shards = 0; shards <= 16; shards += 8) {
            struct words_scene s = usual;

            s.hosts = cases[i].hosts;
            s.micro_shards = shards;
            check(&s, cases[i].numbers);
        }
}

/* The groups themselves: 8 micro-shards of 4 workers. */
static void test_groups(void **state)
{
    static const struct {
        int host[4], sums[2], parts[4], place[4];
    } cases[] = {
        { { 0, 0, 1, 1 }, { 1, 1 }, { 2, 2 }, { 0, 1 } },
        { { 0, 1, 1, 0 }, { 2, 2 }, { 1, 1, 1, 1 }, { 0, 3, 1, 2 } },
        { { 0, 0, 0, 1 }, { 2, 1 }, { 2, 1, 1 }, { 0, 1, 2 } },
        { { 0, 0, 0, 0 }, { 1, 0 }, { 4 }, { 0 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reduction r;
        struct table_groups g;

        assert_int_equal(reduction_init(&r, 4, 8, NULL), OK);
        assert_int_equal(table_groups_init(&g, &r, cases[i].host, NULL), OK);
        for (int k = 0; k < g.count; k++)
            assert_int_equal(table_groups_vectors(&g, k), cases[i].sums[k]);
        for (int v = 0; v < g.pushed.count; v++) {
            assert_int_equal(g.parts[v], cases[i].parts[v]);
            assert_int_equal(g.place[v], cases[i].place[v]);
        }
        table_groups_release(&g);
        reduction_release(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_groups) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
