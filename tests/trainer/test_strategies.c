/*
 * Every strategy over threads instead of ranks: the bits of one rank that adds all workers' gradients, for any number of
 * servers and either transport; cuts in the middle; a step that a worker leaves; replicas that differ.
 */
#include "trainer/strategies/strategy.h"

#include "tests/trainer/kinds.h"
#include "tests/trainer/threads.h"
#include "trainer/collective/exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 11, LEAVES_MAX = 16, BATCH = 8, STEPS = 6, NEVER = -1 };

struct scene {
    const char *model, *strategy, *transport; /* of mpi; of ps */
    enum optimizer_kind optimizer;
    int ranks, servers, asynchronous;
    int64_t staleness; /* NEVER: unbounded */
    int save_at;       /* worker 0 collects the state after so many steps, too */
    int leave_at;      /* worker 1 leaves this step */
    int change_at;     /* worker 1 changes a weight before this step; STEPS: after the last one */
    size_t bucket_bytes;
    int micro_shards; /* of all workers; 0: none, each has one gradient */
    double clip_norm;
};

struct actor {
    const struct scene *scene;
    struct thread_post *post;
    int rank;
    pthread_t thread;
    struct world *world;
    struct network *network;
    struct optimizer *optimizer;
    struct strategy *strategy;
    real *vector;
    real *saved; /* worker 0: the weights at save_at */
    int64_t saved_step, last_step, steps;
    uint32_t flags; /* of all tallies together */
    struct strategy_report report;
    int rc;
    struct error error;
};

/* The gradient of a worker or, with micro-shards, of one of these. */
static void fill(real *vector, const struct network *n, int64_t step, int worker)
{
    const size_t parameters = network_parameter_count(n), total = network_exchange_count(n);
    uint64_t draw = (uint64_t)(step * 1000 + worker + 1) * 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i < total; i++) {
        const double uniform = (double)((draw = draw * 6364136223846793005u + 1442695040888963407u) >> 11) * 0x1p-53;

        vector[i] = (real)(i < parameters ? uniform - 0.5 : (double)BATCH * (0.5 + uniform));
    }
    vector[total - 1] = (real)((double)BATCH + worker * 0.5 + (double)step); /* some weigh more */
}

static void make_state(const struct scene *s, struct network **n, struct optimizer **o)
{
    const struct optimizer_options options = {
        .kind = s->optimizer, .learning_rate = 0.05, .momentum = 0.9, .moving_average = 0.99, .clip_norm = s->clip_norm
    };

    if (network_new(n, model_find(s->model), 0, NULL) < 0)
        abort();
    network_initialize(*n, 7);
    if (optimizer_new(o, *n, &options, NULL) < 0)
        abort();
}

/* As the command line would have them. */
static struct strategy_options options_of(const struct scene *s)
{
    struct strategy_options o = { .kind = kind_of(s->strategy),
                                  .synchronous = 1,
                                  .batch_size = BATCH,
                                  .max_steps = STEPS,
                                  .bucket_bytes = s->bucket_bytes,
                                  .check_every = 2,
                                  .micro_shards = s->micro_shards };
    const struct kind_setting settings[] = {
        { .name = "servers", .number = s->servers },
        { .name = "async", .number = s->asynchronous },
        { .name = "staleness", .number = s->staleness },
        { .name = "transport", .text = s->transport },
        { .name = NULL },
    };

    kind_set(&o, settings);
    return o;
}

/* What a worker's training leaves in its vectors. */
static void fill_vectors(const struct strategy *s, int64_t step)
{
    const struct reduction *r = &s->reduction;
    const size_t total = network_exchange_count(s->network);
    real *leaves[LEAVES_MAX];
    struct tree_node nodes[LEAVES_MAX];

    if (!r->micro_shards)
        fill(s->vectors[0], s->network, step, s->worker);
    for (int v = r->first[s->worker]; r->micro_shards && v < r->first[s->worker + 1]; v++) {
        for (int k = 0; k < r->nodes[v].count; k++) {
            leaves[k] = calloc(total, sizeof *leaves[k]);
            nodes[k] = (struct tree_node){ k, 1 };
            fill(leaves[k], s->network, step, r->nodes[v].first + k);
        }
        reduction_tree_sum(s->vectors[v - r->first[s->worker]], (const real *const *)leaves, nodes, r->nodes[v].count,
                           0, total);
        for (int k = 0; k < r->nodes[v].count; k++)
            free(leaves[k]);
    }
}

/* ---- a rank's life ----------------------------------------------------------------------------------------------- */

static int take_step(struct actor *a, struct tally *tally)
{
    struct strategy *s = a->strategy;
    const int64_t step = s->options.synchronous ? s->global_step : a->steps;
    const size_t total = network_exchange_count(a->network);
    int rc;

    if (s->worker == 1 && step == a->scene->change_at)
        network_parameters(a->network)[3] += 1;
    if ((rc = s->operations->step_begin(s, step, &a->error)) < 0)
        return rc;
    fill_vectors(s, step);
    for (size_t low = total; low > total / 8; low -= total / 8) /* as backward would, a part at a time */
        s->operations->ready(s, low);
    *tally = (struct tally){ .score = { s->worker + 1, BATCH, 1 << s->worker, BATCH } };
    if (s->worker == 1 && step == a->scene->leave_at)
        tally->flags = TALLY_LEFT | TALLY_TERM;
    return s->operations->step_end(s, tally, &a->error);
}

static int train(struct actor *a)
{
    struct strategy *s = a->strategy;
    int rc = OK;

    for (int more = s->more; more && rc == OK;) {
        struct tally tally;

        if ((rc = take_step(a, &tally)) < 0)
            return rc;
        a->flags |= tally.flags;
        more = tally.more;
        a->steps += !(tally.flags & TALLY_LEFT);
        if (s->worker == 0 && more && tally.global_step == a->scene->save_at) {
            rc = s->operations->collect(s, 0, &a->saved_step, &a->error);
            memcpy(a->saved, network_parameters(a->network), network_parameter_count(a->network) * sizeof(real));
        }
    }
    if (s->worker == 1 && a->steps == a->scene->change_at)
        network_parameters(a->network)[3] += 1;
    if (rc == OK && s->worker == 0)
        rc = s->operations->collect(s, 1, &a->last_step, &a->error);
    return rc < 0 ? rc : s->operations->finish(s, &a->error);
}

static void *live(void *context)
{
    static const volatile int no_signal;
    struct actor *a = context;
    const struct strategy_options options = options_of(a->scene);

    make_state(a->scene, &a->network, &a->optimizer);
    a->vector = aligned_alloc(64, (network_exchange_count(a->network) * sizeof(real) + 127) / 64 * 64);
    a->saved = calloc(network_exchange_count(a->network), sizeof *a->saved);
    network_set_exchange(a->network, a->vector);
    a->rc = world_over(&a->world, thread_participant(a->post, a->rank), 60, &a->error);
    if (a->rc == OK)
        a->rc = strategy_start(&a->strategy, a->world, &options, a->optimizer, 1, &a->error);
    if (a->rc < 0)
        return NULL;
    if (a->strategy->worker < 0)
        a->rc = a->strategy->operations->serve(a->strategy, &no_signal, &a->error);
    else
        a->rc = train(a);
    a->strategy->operations->report(a->strategy, &a->report);
    return NULL;
}

static void play(const struct scene *s, struct actor *actors)
{
    struct thread_post *post = thread_post_new(s->ranks);

    for (int r = 0; r < s->ranks; r++) {
        actors[r] = (struct actor){ .scene = s, .post = post, .rank = r, .saved_step = -1 };
        assert_int_equal(pthread_create(&actors[r].thread, NULL, live, &actors[r]), 0);
    }
    for (int r = 0; r < s->ranks; r++)
        pthread_join(actors[r].thread, NULL);
}

static void leave_stage(const struct scene *s, struct actor *actors)
{
    struct thread_post *post = actors[0].post;

    for (int r = 0; r < s->ranks; r++) {
        strategy_free(actors[r].strategy);
        world_close(actors[r].world);
        optimizer_free(actors[r].optimizer);
        network_free(actors[r].network);
        free(actors[r].vector);
        free(actors[r].saved);
    }
    thread_post_free(post);
}

static void assert_went_well(const struct scene *s, const struct actor *actors)
{
    for (int r = 0; r < s->ranks; r++)
        if (actors[r].rc != OK)
            fail_msg("rank %d of %s: %s", r, s->strategy, actors[r].error.message);
}

/* ---- what one rank would have done ------------------------------------------------------------------------------- */

/* After so many steps of all workers' gradients added up: all arrays must be those of `got`. */
static void assert_state(const struct scene *s, int workers, int64_t steps, struct optimizer *got, const real *saved)
{
    struct network *n;
    struct optimizer *o;
    real *vectors, *sum;
    const real *rows[LEAVES_MAX];
    struct tree_node nodes[LEAVES_MAX];
    const int parts = s->micro_shards ? s->micro_shards : workers;
    size_t total;

    make_state(s, &n, &o);
    total = network_exchange_count(n);
    vectors = calloc(total * (size_t)parts, sizeof *vectors);
    sum = calloc(total, sizeof *sum);
    for (int64_t step = 0; step < steps; step++) {
        for (int w = 0; w < parts; w++) {
            rows[w] = vectors + (size_t)w * total;
            nodes[w] = (struct tree_node){ w, 1 };
            fill(vectors + (size_t)w * total, n, step, w);
        }
        if (s->micro_shards)
            reduction_tree_sum(sum, rows, nodes, parts, 0, total);
        else
            exchange_sum(sum, rows, workers, 0, total);
        optimizer_measure(o, step, sum);
        optimizer_apply(o, step, sum, 0, total);
        assert_true(s->clip_norm == 0 || optimizer_gradient_norm(o) > s->clip_norm);
    }
    for (int k = 0; k < ARRAY_KINDS && !saved; k++) {
        const struct optimizer_array x = optimizer_array(o, (enum optimizer_array_kind)k);
        const struct optimizer_array y = optimizer_array(got, (enum optimizer_array_kind)k);

        if (x.count)
            assert_memory_equal(x.values, y.values, x.count * sizeof *x.values);
    }
    if (saved)
        assert_memory_equal(network_parameters(n), saved, network_parameter_count(n) * sizeof *saved);
    free(vectors);
    free(sum);
    optimizer_free(o);
    network_free(n);
}

static const struct scene usual = {
    .model = "resnet32",
    .strategy = "mpi",
    .transport = "auto",
    .optimizer = OPTIMIZER_MOMENTUM,
    .ranks = 3,
    .save_at = 2,
    .staleness = NEVER,
    .leave_at = NEVER,
    .change_at = NEVER,
    .bucket_bytes = 61440,
};

static void check_same_bits(const struct scene *s)
{
    const int workers = s->ranks - s->servers;
    struct actor actors[RANKS_MAX];

    play(s, actors);
    assert_went_well(s, actors);
    for (int w = 0; w < workers; w++) {
        assert_int_equal(actors[w].steps, STEPS);
        assert_memory_equal(network_parameters(actors[w].network), network_parameters(actors[0].network),
                            network_parameter_count(actors[0].network) * sizeof(real));
    }
    assert_int_equal(actors[0].saved_step, s->save_at);
    assert_state(s, workers, s->save_at, NULL, actors[0].saved);
    assert_int_equal(actors[0].last_step, STEPS);
    assert_state(s, workers, STEPS, actors[0].optimizer, NULL);
    leave_stage(s, actors);
}

static void test_same_bits(void **state)
{
    static const struct {
        const char *strategy, *transport;
        int ranks, servers;
    } rows[] = {
        { "single", "", 1, 0 },  { "mpi", "shared", 4, 0 }, { "mpi", "mpi", 5, 0 },
        { "mpi", "auto", 2, 0 }, { "mpi", "auto", 1, 0 },   { "ring", "", 2, 0 },
        { "ps", "", 2, 1 },      { "ps", "", 5, 1 },        { "ps", "", 5, 2 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s = usual;

        s.strategy = rows[i].strategy;
        s.transport = rows[i].transport;
        s.ranks = rows[i].ranks;
        s.servers = rows[i].servers;
        check_same_bits(&s);
        s.model = "cifar10_cnn";
        s.optimizer = OPTIMIZER_ADAM;
        s.bucket_bytes = 1 << 20;
        check_same_bits(&s);
        s.micro_shards = 8;
        check_same_bits(&s);
        s.clip_norm = 0.5;
        check_same_bits(&s);
    }
}

static uint64_t hash_after(const struct scene *s)
{
    struct actor actors[RANKS_MAX];
    uint64_t hash;

    play(s, actors);
    assert_went_well(s, actors);
    hash = exchange_replica_hash(actors[0].network);
    for (int w = 1; w < s->ranks - s->servers; w++)
        assert_true(exchange_replica_hash(actors[w].network) == hash);
    leave_stage(s, actors);
    return hash;
}

/* The same micro-shards: one hash for any number of workers and servers, either transport, and any bucket. */
static void test_one_hash(void **state)
{
    static const size_t buckets[] = { 1024, 65536, 1 << 26 };
    static const struct {
        const char *strategy, *transport;
        int servers;
    } ways[] = { { "mpi", "shared", 0 }, { "mpi", "mpi", 0 }, { "mpi", "two-level", 0 },
                 { "ring", "", 0 },      { "ps", "", 1 },     { "ps", "", 2 },
                 { "ps", "", 3 } };
    struct scene s = usual;

    (void)state;
    s.model = "lenet";
    s.save_at = NEVER;
    for (s.micro_shards = 8; s.micro_shards <= LEAVES_MAX; s.micro_shards *= 2) {
        struct scene alone = s;
        uint64_t wanted;

        alone.strategy = "single";
        alone.ranks = 1;
        wanted = hash_after(&alone);
        for (int workers = 1; workers <= 8; workers++)
            for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
                for (size_t b = 0; b < sizeof buckets / sizeof *buckets; b++) {
                    s.strategy = ways[way].strategy;
                    s.transport = ways[way].transport;
                    s.servers = ways[way].servers;
                    s.ranks = workers + s.servers;
                    s.bucket_bytes = buckets[b];
                    assert_true(hash_after(&s) == wanted);
                }
    }
}

/* A worker leaves step 3: nobody applies it, all end, and the state is that of the steps before. */
static void test_left(void **state)
{
    static const char *const strategies[] = { "mpi", "ps", "ring" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct scene s = usual;
        struct actor actors[RANKS_MAX];

        s.strategy = strategies[i];
        s.micro_shards = i == 2 ? 8 : 0; /* the ring's own order is not that of the workers */
        s.servers = i == 1 ? 2 : 0;
        s.ranks = 3 + s.servers;
        s.leave_at = 3;
        play(&s, actors);
        assert_went_well(&s, actors);
        for (int w = 0; w < 3; w++) {
            assert_int_equal(actors[w].steps, 3);
            assert_int_equal(actors[w].flags, TALLY_LEFT | TALLY_TERM);
        }
        assert_int_equal(actors[0].last_step, 3);
        assert_state(&s, 3, 3, actors[0].optimizer, NULL);
        leave_stage(&s, actors);
    }
}

static void test_replicas_differ(void **state)
{
    struct scene s = usual;
    struct actor actors[RANKS_MAX];

    (void)state;
    s.change_at = 4;
    play(&s, actors);
    for (int w = 0; w < 3; w++) {
        assert_int_equal(actors[w].rc, ERR_CORRUPT);
        assert_string_equal(actors[w].error.message,
                            "replicas differ before step 4: the weights of rank 1 are not those of rank 0");
    }
    leave_stage(&s, actors);
}

/* No step comes any more in which it would be seen, nor one whose weights come from servers. */
static void test_replicas_differ_at_end(void **state)
{
    static const char *const names[] = { "mpi", "ring", "ps" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct scene s = usual;
        struct actor actors[RANKS_MAX];

        s.strategy = names[i];
        s.servers = !strcmp(names[i], "ps");
        s.ranks = 3 + s.servers;
        s.change_at = STEPS;
        play(&s, actors);
        for (int r = 0; r < s.ranks; r++) {
            assert_int_equal(actors[r].rc, ERR_CORRUPT);
            assert_non_null(
                strstr(actors[r].error.message, "replicas differ after the last step: not the same on rank 1"));
        }
        leave_stage(&s, actors);
    }
}

static int64_t histogram_total(const struct strategy_report *r)
{
    int64_t all = 0;

    for (size_t i = 0; i < r->staleness_ranges; i++)
        all += r->staleness[i].pushes;
    return all;
}

/* Asynchronous: as many pushes as steps, whoever makes them, and a saved state of whole pushes. */
static void test_asynchronous(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int servers = 1 + i % 2;
        struct scene s = usual;
        struct actor actors[RANKS_MAX];
        int64_t all = 0;

        s.strategy = "ps";
        s.asynchronous = 1;
        s.staleness = i / 2 - 1;
        s.servers = servers;
        s.ranks = 3 + servers;
        play(&s, actors);
        assert_went_well(&s, actors);
        for (int w = 0; w < 3; w++)
            all += actors[w].steps;
        assert_int_equal(all, STEPS);
        assert_int_equal(histogram_total(&actors[0].report), STEPS);
        assert_true(actors[0].report.staleness_mean <= (double)actors[0].report.staleness_max);
        if (s.staleness == 0) /* at most the two pushes of the others that began with it */
            assert_true(actors[0].report.staleness_max <= 2);
        assert_int_equal(actors[0].last_step, STEPS);
        leave_stage(&s, actors);

        s.ranks = 1 + servers; /* one worker alone: the same bits as if it were synchronous */
        check_same_bits(&s);
    }
}

/* The worker that is asked to end goes alone, and the others hear of it. */
static void test_asynchronous_left(void **state)
{
    struct scene s = usual;
    struct actor actors[RANKS_MAX];

    (void)state;
    s.strategy = "ps";
    s.asynchronous = 1;
    s.servers = 1;
    s.ranks = 3;
    s.leave_at = 0;
    play(&s, actors);
    assert_went_well(&s, actors);
    assert_int_equal(actors[1].steps, 0);
    assert_int_equal(actors[0].last_step, actors[0].steps);
    leave_stage(&s, actors);
}

/* Ranks that were started with different options say so. */
static void *live_otherwise(void *context)
{
    struct actor *a = context;
    struct strategy_options options = options_of(a->scene);

    options.fingerprint = (uint64_t)a->rank;
    make_state(a->scene, &a->network, &a->optimizer);
    a->rc = world_over(&a->world, thread_participant(a->post, a->rank), 60, &a->error);
    if (a->rc == OK)
        a->rc = strategy_start(&a->strategy, a->world, &options, a->optimizer, 1, &a->error);
    return NULL;
}

static void test_other_options(void **state)
{
    struct scene s = usual;
    struct actor actors[RANKS_MAX];
    struct thread_post *post = thread_post_new(2);

    (void)state;
    s.ranks = 2;
    for (int r = 0; r < s.ranks; r++) {
        actors[r] = (struct actor){ .scene = &s, .post = post, .rank = r };
        assert_int_equal(pthread_create(&actors[r].thread, NULL, live_otherwise, &actors[r]), 0);
    }
    for (int r = 0; r < s.ranks; r++) {
        pthread_join(actors[r].thread, NULL);
        assert_int_equal(actors[r].rc, ERR_ARG);
        assert_non_null(strstr(actors[r].error.message, "the strategy's options: not the same on rank 1"));
    }
    leave_stage(&s, actors);
}

static void test_table(void **state)
{
    struct error e;

    (void)state;
    for (size_t i = 0; strategy_kinds[i]; i++) {
        const struct strategy_kind *k = strategy_kinds[i];
        struct scene s = usual;
        struct strategy_options o;
        char text[64] = "x";

        s.strategy = k->name;
        s.servers = 1;
        o = options_of(&s);
        assert_ptr_equal(kind_of(k->name), k); /* names differ */
        assert_true(k->workers(&o, 2, &e) <= 2);
        k->describe(&o, 2, text, sizeof text);
        assert_string_not_equal(text, "x");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_one_hash),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_replicas_differ),
        cmocka_unit_test(test_replicas_differ_at_end),
        cmocka_unit_test(test_asynchronous),
        cmocka_unit_test(test_asynchronous_left),
        cmocka_unit_test(test_other_options),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
