/*
 * Asynchronous, bounded and backup workers over threads, for 1 to 3 servers: the record of a run says which gradients,
 * of which weights, made each update, and one rank that makes the same updates has the same bits; a run that follows
 * the record has them, too, whatever the workers' speeds and the checkpoints between.
 */
#include "trainer/strategies/strategy.h"

#include "base/file.h"
#include "base/random.h"
#include "tests/trainer/kinds.h"
#include "tests/trainer/players.h"
#include "trainer/server/arrivals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 14, WEIGHT = 8 };

struct scene {
    int workers, servers, asynchronous, aggregate;
    int64_t staleness;
    int save_every; /* of worker 0's steps; 0: never */
    uint64_t seed;  /* of the workers' speeds */
    double clip_norm;
    const char *record, *replay;
    real *weights; /* out, of worker 0: after the run */
    struct strategy_gradients gradients;
    int64_t steps, pushes[PLAYERS_MAX];
};

static void must(int holds, const struct error *e)
{
    if (!holds) {
        fprintf(stderr, "%s\n", e ? e->message : "a rank of the scene");
        abort();
    }
}

static void make_state(struct network **n, struct optimizer **o, double clip_norm)
{
    const struct optimizer_options options = {
        .kind = OPTIMIZER_MOMENTUM, .learning_rate = 0.05, .momentum = 0.9, .clip_norm = clip_norm
    };

    must(network_new(n, model_find("lenet"), 0, NULL) == OK, NULL);
    network_initialize(*n, 7);
    must(optimizer_new(o, *n, &options, NULL) == OK, NULL);
}

/* The gradient of a worker's push at these weights. */
static void fill(real *vector, const real *weights, size_t count, int worker, int64_t push)
{
    struct random r;

    random_init(&r, (uint64_t)worker, RANDOM_TEST, (uint64_t)push, 0);
    for (size_t i = 0; i < count; i++)
        vector[i] = (real)(random_uniform(&r) - 0.5 + 0.3 * (double)weights[i]);
    vector[count] = (real)(WEIGHT + worker); /* nothing else is shared by lenet */
}

static void linger(struct random *r, int worker)
{
    static const uint64_t most[] = { 1000, 30000, 300000, 3000 };
    volatile uint64_t at = 0;

    for (const uint64_t to = random_below(r, most[worker % 4]); at < to;)
        at = at + 1;
}

static void train(struct scene *s, struct strategy *how, real *vector)
{
    struct network *n = how->network;
    const size_t count = network_parameter_count(n), total = network_exchange_count(n);
    struct random speed;
    struct error e;
    int64_t step;

    must(total == count + 1, NULL);
    random_init(&speed, s->seed, RANDOM_TEST, (uint64_t)how->worker, 1);
    for (int more = how->more; more;) {
        struct tally tally = { .score = { 1, WEIGHT, 1, WEIGHT }, .flags = TALLY_FINE };
        int64_t *k = &s->pushes[how->worker];

        must(how->operations->step_begin(how, *k, &e) == OK, &e);
        linger(&speed, how->worker);
        fill(vector, network_parameters(n), count, how->worker, (*k)++);
        for (size_t low = total; low > total / 4; low -= total / 4)
            how->operations->ready(how, low);
        must(how->operations->step_end(how, &tally, &e) == OK, &e);
        more = tally.more;
        if (how->worker == 0 && more && s->save_every && *k % s->save_every == 0)
            must(how->operations->collect(how, 0, &step, &e) == OK, &e);
    }
    if (how->worker == 0)
        must(how->operations->collect(how, 1, &s->steps, &e) == OK, &e);
    must(how->operations->finish(how, &e) == OK, &e);
}

static void live(struct player *p)
{
    static const volatile int no_signal;
    struct scene *s = (struct scene *)(uintptr_t)p->scene;
    const struct kind_setting settings[] = {
        { .name = "servers", .number = s->servers },
        { .name = "async", .number = s->asynchronous },
        { .name = "staleness", .number = s->staleness },
        { .name = "replicas-to-aggregate", .number = s->aggregate },
        { .name = "record", .text = s->record },
        { .name = "replay", .text = s->replay },
        { .name = NULL },
    };
    struct strategy_options options = {
        .kind = kind_of("ps"), .synchronous = 1, .batch_size = WEIGHT, .max_steps = STEPS, .bucket_bytes = 9000
    };
    struct network *n;
    struct optimizer *o;
    struct strategy *how;
    struct strategy_report report;
    struct error e;
    real *vector;

    kind_set(&options, settings);
    make_state(&n, &o, s->clip_norm);
    vector = reals_new(network_exchange_count(n));
    must(vector != NULL, NULL);
    network_set_exchange(n, vector);
    must(strategy_start(&how, p->world, &options, o, 1, &e) == OK, &e);
    if (how->worker < 0)
        must(how->operations->serve(how, &no_signal, &e) == OK, &e);
    else
        train(s, how, vector);
    if (how->worker == 0) {
        memcpy(s->weights, network_parameters(n), network_parameter_count(n) * sizeof(real));
        how->operations->report(how, &report);
        s->gradients = report.gradients;
    }
    strategy_free(how);
    optimizer_free(o);
    network_free(n);
    free(vector);
}

static void play(struct scene *s)
{
    struct player players[PLAYERS_MAX];

    memset(s->pushes, 0, sizeof s->pushes);
    players_play(players, s->workers + s->servers, live, s);
    players_leave(players, s->workers + s->servers);
    assert_int_equal(s->steps, STEPS);
}

static void read_record(const char *path, struct buffer *bytes, struct arrivals *a)
{
    *bytes = (struct buffer)BUFFER_EMPTY;
    assert_int_equal(file_read(path, 1 << 20, bytes, NULL), OK);
    assert_int_equal(arrivals_parse(a, path, (const uint8_t *)bytes->data, bytes->length, NULL), OK);
    assert_int_equal(a->complete, 1);
    assert_int_equal(a->steps, STEPS);
}

/* What one rank has that makes the updates of the record. */
static void follow(const struct arrivals *a, double clip_norm, real *out)
{
    struct network *n;
    struct optimizer *o;
    int64_t pushes[PLAYERS_MAX] = { 0 };
    size_t count, i = 0;
    real *history, *vectors, *sum;

    make_state(&n, &o, clip_norm);
    count = network_parameter_count(n);
    history = reals_new(STEPS * count);
    vectors = reals_new(2 * PLAYERS_MAX * (count + 1));
    sum = reals_new(count + 1);
    assert_true(history && vectors && sum);
    for (size_t step = 0; step < STEPS; step++) {
        const real *rows[2 * PLAYERS_MAX];
        int members = 0;

        memcpy(history + step * count, network_parameters(n), count * sizeof *history);
        for (; i < a->count && a->items[i].step == step; i++) {
            const struct arrival *x = &a->items[i];
            real *vector = vectors + (size_t)members * (count + 1);

            fill(vector, history + x->version * count, count, (int)x->worker, pushes[x->worker]++);
            if (a->header.aggregate == 0 || x->version == step)
                rows[members++] = vector;
        }
        assert_int_equal(members, a->header.aggregate ? a->header.aggregate : 1);
        exchange_sum(sum, rows, members, 0, count + 1);
        if (a->header.aggregate) {
            optimizer_measure(o, (int64_t)step, sum);
        } else { /* by the worker, with its weights */
            memcpy(network_parameters(n), history + a->items[step].version * count, count * sizeof *history);
            optimizer_measure(o, (int64_t)step, sum);
            memcpy(network_parameters(n), history + step * count, count * sizeof *history);
        }
        assert_true(clip_norm == 0 || optimizer_gradient_norm(o) > clip_norm);
        optimizer_apply(o, (int64_t)step, sum, 0, count + 1);
    }
    memcpy(out, network_parameters(n), count * sizeof *out);
    free(history);
    free(vectors);
    free(sum);
    optimizer_free(o);
    network_free(n);
}

static void check(struct scene s)
{
    char directory[] = "/tmp/test-decided-XXXXXX", first[64], second[64];
    struct buffer bytes, again;
    struct arrivals a, b;
    struct network *n;
    real *wanted, *weights;
    int64_t pushes = 0;
    size_t size;

    assert_int_equal(network_new(&n, model_find("lenet"), 0, NULL), OK);
    size = network_parameter_count(n) * sizeof(real);
    network_free(n);
    wanted = malloc(size);
    weights = malloc(size);
    assert_true(wanted && weights && mkdtemp(directory));
    snprintf(first, sizeof first, "%s/first", directory);
    snprintf(second, sizeof second, "%s/second", directory);
    s.weights = weights;
    s.record = first;
    play(&s);
    read_record(first, &bytes, &a);
    follow(&a, s.clip_norm, wanted);
    assert_memory_equal(weights, wanted, size);
    for (int w = 0; w < s.workers; w++)
        pushes += s.pushes[w];
    if (!s.asynchronous) {
        assert_int_equal(s.gradients.used, (s.aggregate ? s.aggregate : s.workers) * STEPS);
        assert_int_equal(s.gradients.used + s.gradients.dropped, pushes);
        assert_true(s.gradients.samples_used + s.gradients.samples_dropped == (double)(WEIGHT * pushes));
    } else {
        assert_int_equal(pushes, STEPS);
    }

    s.record = second;
    s.replay = first;
    s.seed += 1000;
    s.save_every = s.save_every ? 0 : 2;
    memset(weights, 0, size);
    play(&s);
    assert_memory_equal(weights, wanted, size);
    read_record(second, &again, &b);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.data, bytes.data, bytes.length);
    arrivals_release(&a);
    arrivals_release(&b);
    buffer_release(&bytes);
    buffer_release(&again);
    unlink(first);
    unlink(second);
    assert_int_equal(rmdir(directory), 0);
    free(wanted);
    free(weights);
}

static void test_asynchronous(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 3; servers++)
        for (int64_t staleness = -1; staleness < 2; staleness++)
            check((struct scene){ .workers = 4,
                                  .servers = servers,
                                  .asynchronous = 1,
                                  .staleness = staleness,
                                  .save_every = servers % 2,
                                  .seed = (uint64_t)(10 * servers + staleness) });
}

static void test_backup_workers(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 3; servers++)
        for (int aggregate = 1; aggregate <= 3; aggregate++)
            check((struct scene){ .workers = 4,
                                  .servers = servers,
                                  .aggregate = aggregate,
                                  .staleness = -1,
                                  .save_every = servers % 2,
                                  .seed = (uint64_t)(10 * servers + aggregate) });
}

/* Each push by its own norm, or the sum of an update's members by theirs: with the bits of one rank, too. */
static void test_clipped(void **state)
{
    (void)state;
    for (int servers = 1; servers <= 3; servers++) {
        struct scene s = { .workers = 4,
                           .servers = servers,
                           .staleness = -1,
                           .save_every = 1 + servers % 2,
                           .clip_norm = 2,
                           .seed = (uint64_t)(1000 * servers) };

        s.asynchronous = 1;
        check(s);
        s.staleness = 1;
        check(s);
        s.asynchronous = 0;
        s.staleness = -1;
        s.aggregate = servers;
        check(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asynchronous),
        cmocka_unit_test(test_backup_workers),
        cmocka_unit_test(test_clipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
