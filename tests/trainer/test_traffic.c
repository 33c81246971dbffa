/* What ranks send is counted, by the table of strategies.md 8.1 exactly; and the busiest link is found. */
#include "trainer/collective/traffic.h"

#include "tests/check.h"
#include "tests/trainer/kinds.h"
#include "tests/trainer/sums.h"
#include "trainer/collective/places.h"
#include "trainer/server/parameter_protocol.h"
#include "trainer/server/placement.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, BATCH = 8 };

/* ---- all-reduce -------------------------------------------------------------------------------------------------- */

static int by_messages(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e)
{
    (void)s;
    return message_exchange_new(out, plan, e);
}

static int in_window(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e)
{
    (void)s;
    return shared_window_new(out, plan, e);
}

/* 2 (n - 1) / n D each way, exactly, where n divides the cache lines of every bucket; else for all ranks together. */
static void check_sums(const struct sums *s, int n)
{
    const int64_t tallies = SUMS_STEPS * (n - 1) * (int64_t)sizeof(struct tally_part);
    const int64_t all = SUMS_STEPS * 2 * (n - 1) * (int64_t)(s->total * sizeof(real));
    struct player players[PLAYERS_MAX];
    int64_t sent = 0, received = 0, own, each;

    players_play(players, n, sums_play, s);
    for (int r = 0; r < n; r++) {
        const struct traffic_link link = traffic_of_rank(&players[n - 1].traffic, r);

        if (s->total % ((size_t)n * EXCHANGE_ALIGNMENT) == 0 && s->bucket % ((size_t)n * EXCHANGE_ALIGNMENT) == 0) {
            assert_int_equal(link.sent, all / n + tallies);
            assert_int_equal(link.received, all / n + tallies);
        }
        own = (int64_t)slices_count(s->total, s->bucket, n, r);
        each = SUMS_STEPS * (int64_t)sizeof(real) * ((int64_t)s->total - own + (n - 1) * own) + tallies;
        assert_int_equal(link.sent, each);
        assert_int_equal(link.received, each);
        assert_int_equal(link.sent, traffic_of_rank(&players[0].traffic, r).sent); /* all know the same */
        assert_int_equal(traffic_of_rank_away(&players[0].traffic, r).sent, 0);    /* one host */
        sent += link.sent;
        received += link.received;
    }
    assert_int_equal(sent, all + n * tallies);
    assert_int_equal(received, sent);
    players_leave(players, n);
}

/* With several vectors a rank sends slices of each, and still one sum. */
static void check_nodes(const struct sums *s, int n)
{
    struct player players[PLAYERS_MAX];
    struct reduction reduction;

    assert_int_equal(reduction_init(&reduction, n, s->micro_shards, NULL), OK);
    players_play(players, n, sums_play, s);
    for (int r = 0; r < n; r++) {
        const struct traffic_link link = traffic_of_rank(&players[0].traffic, r);
        const int64_t own = (int64_t)slices_count(s->total, s->bucket, n, r), rest = (int64_t)s->total - own;
        const int64_t vectors = reduction_vectors(&reduction, r), tally = (n - 1) * (int64_t)sizeof(struct tally_part);
        const int64_t out = rest * vectors + own * (n - 1), in = own * (reduction.count - vectors) + rest;

        assert_int_equal(link.sent, SUMS_STEPS * (out * (int64_t)sizeof(real) + tally));
        assert_int_equal(link.received, SUMS_STEPS * (in * (int64_t)sizeof(real) + tally));
    }
    players_leave(players, n);
    reduction_release(&reduction);
}

static void test_nodes(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++)
        for (int shards = 8; shards <= 16; shards *= 2) {
            check_nodes(&(struct sums){ 1001, 96, shards, .make = by_messages }, n);
            check_nodes(&(struct sums){ 1001, 96, shards, .make = in_window }, n);
        }
}

static void test_all_reduce(void **state)
{
    static const size_t totals[][2] = { { 3840, 3840 }, { 3840, 960 }, { 1001, 96 }, { 7, 16 } };

    (void)state;
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        for (int n = 2; n <= 5; n++) {
            check_sums(&(struct sums){ totals[i][0], totals[i][1], .make = by_messages }, n);
            check_sums(&(struct sums){ totals[i][0], totals[i][1], .make = in_window }, n);
        }
}

/* ---- parameter servers ------------------------------------------------------------------------------------------- */

struct pushes {
    int servers;
    size_t bucket_bytes;
    int together; /* the workers, which are on one host, push together */
};

static void take_steps(struct strategy *s)
{
    struct error e = { 0 };
    int64_t step;

    for (int more = s->more; more;) {
        struct tally tally = { .score = { 1, BATCH, 1, BATCH } };

        if (s->operations->step_begin(s, s->global_step, &e) < 0 || s->operations->step_end(s, &tally, &e) < 0)
            abort();
        more = tally.more;
    }
    if (s->worker == 0 && s->operations->collect(s, 1, &step, &e) < 0)
        abort();
    if (s->operations->finish(s, &e) < 0)
        abort();
}

static struct strategy_options options_of(const struct pushes *scene)
{
    struct strategy_options o = { .kind = kind_of("ps"),
                                  .synchronous = 1,
                                  .batch_size = BATCH,
                                  .max_steps = STEPS,
                                  .bucket_bytes = scene->bucket_bytes };
    const struct kind_setting settings[] = { { .name = "servers", .number = scene->servers },
                                             { .name = "local-aggregation", .text = scene->together ? "on" : "auto" },
                                             { .name = NULL } };

    kind_set(&o, settings);
    return o;
}

static void push_and_pull(struct player *p)
{
    static const volatile int no_signal;
    const struct strategy_options options = options_of(p->scene);
    struct optimizer *optimizer;
    struct network *network;
    struct strategy *s;
    struct error e = { 0 };
    real *vector;

    if (network_new(&network, model_find("lenet"), 0, &e) < 0)
        abort();
    network_initialize(network, 1);
    if (optimizer_new(&optimizer, network, &(struct optimizer_options){ .learning_rate = 0.1 }, &e) < 0)
        abort();
    vector = reals_new(network_exchange_count(network));
    vector[network_exchange_count(network) - 1] = BATCH;
    network_set_exchange(network, vector);
    if (strategy_start(&s, p->world, &options, optimizer, 1, &e) < 0)
        abort();
    if (s->worker < 0 && s->operations->serve(s, &no_signal, &e) < 0)
        abort();
    if (s->worker >= 0)
        take_steps(s);
    if (traffic_gather(&p->traffic, p->world, s->workers, "count", &e) < 0)
        abort();
    strategy_free(s);
    optimizer_free(optimizer);
    network_free(network);
    free(vector);
}

/* A worker: D each way. Server j: n D_j each way. And the weight to each server, the flags back; a tally, a verdict. */
static void check_pushes(int workers, int servers, size_t bucket_bytes)
{
    const struct pushes scene = { servers, bucket_bytes, 0 };
    struct player players[PLAYERS_MAX];
    struct placement placement;
    struct network *network;
    int64_t d = 0;

    players_play(players, workers + servers, push_and_pull, &scene);
    assert_int_equal(network_new(&network, model_find("lenet"), 0, NULL), OK);
    assert_int_equal(placement_of(&placement, network, servers, 0, NULL), OK);
    for (int j = 0; j < servers; j++) {
        const struct traffic_link link = traffic_of_rank(&players[0].traffic, workers + j);
        const int64_t held = (int64_t)(placement.held[j] * sizeof(real));

        assert_int_equal(link.received,
                         STEPS * workers * (held + 4 + (j == 0 ? (int64_t)sizeof(struct tally_part) : 0)));
        assert_int_equal(link.sent, STEPS * workers * (held + 8 + (j == 0 ? (int64_t)sizeof(struct verdict) : 0)));
        d += held;
    }
    assert_int_equal(d, network_parameter_count(network) * sizeof(real));
    for (int w = 0; w < workers; w++) {
        const struct traffic_link link = traffic_of_rank(&players[0].traffic, w);

        assert_int_equal(link.sent, STEPS * (d + 4 * servers + (int64_t)sizeof(struct tally_part)));
        assert_int_equal(link.received, STEPS * (d + 8 * servers + (int64_t)sizeof(struct verdict)));
    }
    assert_true(traffic_busiest(&players[0].traffic).rank >= workers);
    placement_release(&placement);
    network_free(network);
    players_leave(players, workers + servers);
}

/* Workers of a host that push together: each server gets and sends its part once. In memory the first one reads what all
 * others push, and they what comes for them. */
static void check_pushes_together(int workers, int servers, size_t bucket_bytes)
{
    const struct pushes scene = { servers, bucket_bytes, 1 };
    const int64_t part = sizeof(struct tally_part), verdict = sizeof(struct verdict);
    struct player players[PLAYERS_MAX];
    struct placement placement;
    struct network *network;
    int64_t up = 0, down = 0;

    players_play(players, workers + servers, push_and_pull, &scene);
    assert_int_equal(network_new(&network, model_find("lenet"), 0, NULL), OK);
    assert_int_equal(placement_of(&placement, network, servers, 0, NULL), OK);
    for (int j = 0; j < servers; j++) {
        const struct traffic_link link = traffic_of_rank(&players[0].traffic, workers + j);
        const int64_t held = (int64_t)(placement.held[j] * sizeof(real));

        assert_int_equal(link.received, STEPS * (held + 4 + (j == 0 ? workers * part : 0)));
        assert_int_equal(link.sent, STEPS * (held + 8 + (j == 0 ? verdict : 0)));
        up += held + 4;
        down += held + 8;
    }
    for (int w = 0; w < workers; w++) {
        const struct traffic_link link = traffic_of_rank(&players[0].traffic, w);
        const int64_t out = w ? up + part : up + workers * part + (workers - 1) * (down + verdict);
        const int64_t in = w ? down + verdict : down + verdict + (workers - 1) * (up + part);

        assert_int_equal(link.sent, STEPS * out);
        assert_int_equal(link.received, STEPS * in);
    }
    placement_release(&placement);
    network_free(network);
    players_leave(players, workers + servers);
}

static void test_servers(void **state)
{
    (void)state;
    check_pushes(2, 1, 1 << 20);
    check_pushes(3, 2, 4096);
    check_pushes(4, 3, 16384);
    check_pushes(3, 3, 16384);
    check_pushes_together(2, 1, 1 << 20);
    check_pushes_together(4, 3, 16384);
    check_pushes_together(1, 2, 4096);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static const struct process three_hosts[] = { { .host = "a", .boot = "1" },
                                              { .host = "b", .boot = "1" },
                                              { .host = "b", .boot = "1" },
                                              { .host = "c", .boot = "1" } };

static void assert_text(const struct traffic *t, int64_t steps, const char *wanted)
{
    const struct traffic_link link = traffic_busiest(t);
    struct buffer text = BUFFER_EMPTY;

    traffic_text(&text, t, &link, steps);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_release(&text);
}

static void test_busiest(void **state)
{
    struct world_sent sent[4][4] = { 0 };
    int hosts[4];
    struct traffic t = { 4, 3, places_hosts(three_hosts, 4, hosts), three_hosts, hosts, sent[0] };
    struct buffer json = BUFFER_EMPTY;

    (void)state;
    assert_int_equal(t.hosts, 3);
    sent[1][2].memory = 1 << 20; /* stays on host b */
    sent[0][1].steps = 3000;
    sent[1][3].steps = 1000;
    sent[2][3].steps = 2500;
    sent[3][0].aside = 1 << 20; /* not in steps */
    assert_text(&t, 10, "host b (rank 1, 2), 350 B sent and 300 B received a step");
    assert_int_equal(traffic_of_host(&t, 2).received, 3500);
    assert_int_equal(traffic_of_rank(&t, 2).received, 1 << 20);
    assert_int_equal(traffic_of_rank_away(&t, 2).received, 0);
    traffic_json(&json, &t, 10);
    assert_non_null(strstr(buffer_text(&json), "{\"host\": \"c\", \"rank\": 3, \"role\": \"server\", "
                                               "\"sent_per_step\": 0.0, \"received_per_step\": 350.0"));
    assert_non_null(strstr(buffer_text(&json), "\"sent_between_steps\": 1048576}], \"busiest_link\": {\"host\": \"b\", "
                                               "\"sent_per_step\": 350.0, \"received_per_step\": 300.0}"));
    buffer_release(&json);
    t.hosts = 1;
    memset(hosts, 0, sizeof hosts);
    assert_text(&t, 1024, "rank 1, 1.00 KiB sent and 2 B received a step");
    sent[0][1].steps = sent[0][2].steps = 1 << 20;
    assert_text(&t, 1024, "rank 0, 2.00 KiB sent and 0 B received a step");
    sent[0][3].steps = sent[1][3].steps = 2 << 20;
    assert_text(&t, 1024, "server 0 (rank 3), 0 B sent and 4.00 KiB received a step");
    assert_text(&t, 0, "server 0 (rank 3), 0 B sent and 0 B received a step"); /* no step: no division */
}

static void test_no_launcher(void **state)
{
    struct buffer json = BUFFER_EMPTY;
    struct traffic none = { 0 };

    (void)state;
    traffic_json(&json, &none, 10);
    assert_string_equal(buffer_text(&json), "\"links\": [], \"busiest_link\": null");
    buffer_release(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce), cmocka_unit_test(test_nodes),       cmocka_unit_test(test_servers),
        cmocka_unit_test(test_busiest),    cmocka_unit_test(test_no_launcher),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
