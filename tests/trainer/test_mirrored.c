/*
 * Workers that are threads: the bits of one thread that trains them one after the other and adds their gradients, for
 * both kinds of weights; micro-shards; the copies at the start, counted; a step that is left; replicas that differ.
 */
#include "trainer/strategies/strategy.h"

#include "base/clock.h"
#include "base/random.h"
#include "tests/model/images_batch.h"
#include "tests/trainer/kinds.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, IMAGES_MAX = 64, PIXELS_MAX = 32 * 32 * 3, NEVER = -1 };

struct scene {
    const struct model *model;
    const char *weights;
    enum optimizer_kind optimizer;
    int threads, unit, shards; /* unit: images computed at once; shards: micro-shards, 0: one unit a thread */
};

struct run {
    struct scene scene;
    struct world *world;
    struct network *network;
    struct optimizer *optimizer;
    struct micro_shards *shards;
    struct strategy *strategy;
};

static real images[IMAGES_MAX * PIXELS_MAX];
static int32_t labels[IMAGES_MAX];
static int64_t samples[IMAGES_MAX];

/* How many units a step has. */
static int units_of(const struct scene *s)
{
    return s->shards ? s->shards : s->threads;
}

/* The batch of all workers at that step. */
static struct batch batch_of(const struct scene *s, int64_t step)
{
    const struct model *m = s->model;
    const int count = units_of(s) * s->unit;
    struct batch b;
    struct random r;

    assert_true(count <= IMAGES_MAX);
    random_init(&r, 1, RANDOM_TEST, (uint64_t)step, 0);
    for (int i = 0; i < count * m->height * m->width * m->channels; i++)
        images[i] = (real)random_uniform(&r);
    for (int i = 0; i < count; i++) {
        labels[i] = (int32_t)random_below(&r, 10);
        samples[i] = step * count + i;
    }
    b = images_batch(m, images, labels, samples, count);
    b.step = step;
    return b;
}

static struct optimizer *new_optimizer(const struct scene *s, struct network *n)
{
    const struct optimizer_options options = {
        .kind = s->optimizer, .learning_rate = 0.05, .momentum = 0.9, .moving_average = 0.99
    };
    struct optimizer *o;

    assert_int_equal(optimizer_new(&o, n, &options, NULL), OK);
    return o;
}

static struct network *new_network(const struct scene *s)
{
    struct network *n;
    struct error e = { 0 };

    if (network_new(&n, s->model, s->unit, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(n, 7);
    return n;
}

/* As the command line would have them. */
static struct strategy_options options_of(const struct scene *s)
{
    struct strategy_options o = { .kind = &strategy_mirrored,
                                  .synchronous = 1,
                                  .unit = s->unit,
                                  .micro_shards = s->shards,
                                  .max_steps = STEPS,
                                  .bucket_bytes = 61440,
                                  .check_every = 2,
                                  .threads = s->threads };
    const struct kind_setting settings[] = { { .name = "weights", .text = s->weights }, { .name = NULL } };

    kind_set(&o, settings);
    return o;
}

static struct run open_run(const struct scene *s)
{
    struct run r = { .scene = *s };
    const struct strategy_options options = options_of(s);
    struct tree_node nodes[REDUCTION_TREE_NODES_MAX];
    const int count = reduction_tree_nodes(s->shards, 0, reduction_tree_first(s->shards, s->threads, 1), nodes);
    struct error e = { 0 };

    r.network = new_network(s);
    r.optimizer = new_optimizer(s, r.network);
    assert_int_equal(micro_shards_new(&r.shards, r.network, nodes, count, NULL), OK);
    assert_int_equal(world_open(&r.world, 60, NULL), OK);
    if (strategy_start(&r.strategy, r.world, &options, r.optimizer, 1, &e) < 0)
        fail_msg("%s", e.message);
    micro_shards_set_vectors(r.shards, r.strategy->vectors);
    assert_int_equal(r.strategy->workers, s->threads);
    assert_int_equal(r.strategy->worker, 0);
    return r;
}

static void close_run(struct run *r)
{
    strategy_free(r->strategy);
    optimizer_free(r->optimizer);
    micro_shards_free(r->shards);
    network_free(r->network);
    world_close(r->world);
}

/* As the loop does. 1, 0: the step was left; or an error. */
static int take_step(struct run *r, struct tally *tally, struct error *e)
{
    struct strategy *s = r->strategy;
    const struct batch batch = batch_of(&r->scene, s->global_step);
    struct score score;
    int whole, rc;

    assert_int_equal(s->operations->step_begin(s, batch.step, e), OK);
    whole = s->operations->train(s, r->shards, &batch, 9, &score);
    *tally = (struct tally){ .score = score, .flags = whole ? 0 : TALLY_LEFT };
    rc = s->operations->step_end(s, tally, e);
    return rc < 0 ? rc : whole;
}

/* ---- what one thread would have done ----------------------------------------------------------------------------- */

struct reference {
    struct network *network;
    struct optimizer *optimizer;
    struct micro_shards *shards;
    real *vectors[IMAGES_MAX];
};

static struct reference open_reference(const struct scene *s)
{
    struct reference r = { .network = new_network(s) };

    r.optimizer = new_optimizer(s, r.network);
    assert_int_equal(micro_shards_new(&r.shards, r.network, &(struct tree_node){ 0, 1 }, s->shards > 0, NULL), OK);
    for (int w = 0; w < units_of(s); w++)
        assert_non_null(r.vectors[w] = reals_new(network_exchange_count(r.network)));
    return r;
}

static struct score reference_step(struct reference *r, const struct scene *s, int64_t step)
{
    const struct batch batch = batch_of(s, step);
    const size_t total = network_exchange_count(r->network);
    const real *rows[IMAGES_MAX];
    struct tree_node leaves[IMAGES_MAX];
    struct score all = { 0 }, one;

    for (int w = 0; w < units_of(s); w++) {
        const struct batch part = batch_part(&batch, w * s->unit, s->unit);

        network_set_exchange(r->network, r->vectors[w]);
        assert_int_equal(micro_shards_train(r->shards, &part, 9, NULL, &one), 1);
        score_add(&all, &one);
        rows[w] = r->vectors[w];
        leaves[w] = (struct tree_node){ w, 1 };
    }
    if (s->shards)
        reduction_tree_sum(r->vectors[0], rows, leaves, s->shards, 0, total);
    else
        exchange_sum(r->vectors[0], rows, s->threads, 0, total);
    optimizer_apply(r->optimizer, step, r->vectors[0], 0, total);
    return all;
}

static void close_reference(struct reference *r, const struct scene *s)
{
    for (int w = 0; w < units_of(s); w++)
        free(r->vectors[w]);
    optimizer_free(r->optimizer);
    micro_shards_free(r->shards);
    network_free(r->network);
}

static void assert_same_state(struct optimizer *a, struct optimizer *b)
{
    for (int k = 0; k < ARRAY_KINDS; k++) {
        const struct optimizer_array x = optimizer_array(a, (enum optimizer_array_kind)k);
        const struct optimizer_array y = optimizer_array(b, (enum optimizer_array_kind)k);

        assert_int_equal(x.count, y.count);
        if (x.count)
            assert_memory_equal(x.values, y.values, x.count * sizeof *x.values);
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void check(const struct scene *s)
{
    struct run r = open_run(s);
    struct reference one = open_reference(s);
    struct strategy_report report;
    struct error e = { 0 };
    int64_t step = NEVER;

    assert_int_equal(r.strategy->more, 1);
    for (int64_t t = 0; t < STEPS; t++) {
        const struct score wanted = reference_step(&one, s, t);
        struct tally tally;

        if (take_step(&r, &tally, &e) != 1)
            fail_msg("%s", e.message);
        assert_int_equal(tally.global_step, t + 1);
        assert_int_equal(tally.more, t + 1 < STEPS);
        assert_memory_equal(&tally.score, &wanted, sizeof wanted);
        assert_same_state(r.optimizer, one.optimizer);
    }
    assert_int_equal(r.strategy->operations->collect(r.strategy, 1, &step, NULL), OK);
    assert_int_equal(step, STEPS);
    assert_int_equal(r.strategy->operations->finish(r.strategy, &e), OK);
    r.strategy->operations->report(r.strategy, &report);
    assert_string_equal(report.transport, "threads");
    assert_true(report.bytes_step == 0);
    close_reference(&one, s);
    close_run(&r);
}

static void test_same_bits(void **state)
{
    static const int threads[] = { 1, 2, 3, 4, 5, 8 };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof threads / sizeof *threads; i++) {
        struct scene s = { .model = model_find("lenet"),
                           .weights = i % 2 ? "shared" : "copied",
                           .optimizer = OPTIMIZER_MOMENTUM,
                           .threads = threads[i / 2],
                           .unit = 6 };

        check(&s);
        s.unit = 2;
        s.shards = 3 * s.threads;
        s.optimizer = OPTIMIZER_ADAM;
        check(&s);
    }
}

/* Batch statistics are the threads' own, their means those of all. */
static void test_batch_statistics(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        const struct scene s = { .model = model_find("resnet32"),
                                 .weights = shared ? "shared" : "copied",
                                 .optimizer = OPTIMIZER_MOMENTUM,
                                 .threads = 3,
                                 .unit = 2 };

        check(&s);
    }
}

/* The micro-shards of a step are the same work however many threads share it. */
static void test_micro_shards(void **state)
{
    struct scene s = { .model = model_find("lenet"),
                       .weights = "copied",
                       .optimizer = OPTIMIZER_ADAM,
                       .threads = 1,
                       .unit = 4,
                       .shards = 8 };
    struct reference one = open_reference(&s);

    (void)state;
    for (int64_t t = 0; t < STEPS; t++)
        reference_step(&one, &s, t);
    for (s.threads = 1; s.threads <= 8; s.threads++)
        for (int shared = 0; shared < 2; shared++) {
            struct run r;

            s.weights = shared ? "shared" : "copied";
            r = open_run(&s);
            for (int64_t t = 0; t < STEPS; t++) {
                struct tally tally;

                assert_int_equal(take_step(&r, &tally, NULL), 1);
            }
            assert_same_state(r.optimizer, one.optimizer);
            close_run(&r);
        }
    close_reference(&one, &s);
}

/* 14 variables with two slots each: 42 copies for each replica after the first; shared weights need none. */
static void test_copies_are_counted(void **state)
{
    static const struct {
        int threads;
        const char *weights;
        int64_t copies;
    } rows[] = {
        { 1, "copied", 0 }, { 2, "copied", 42 }, { 4, "copied", 126 }, { 8, "copied", 294 }, { 8, "shared", 0 }
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct scene s = {
            .model = model_find("mnist_cnn"), .weights = rows[i].weights, .threads = rows[i].threads, .unit = 1
        };
        const struct optimizer_options adam = { .kind = OPTIMIZER_ADAM, .learning_rate = 0.001 };
        const struct strategy_options options = options_of(&s);
        struct strategy_report report;
        struct run r = { .scene = s, .network = new_network(&s) };

        assert_int_equal(network_parameter_count(r.network), 1014922);
        assert_int_equal(optimizer_new(&r.optimizer, r.network, &adam, NULL), OK);
        assert_int_equal(world_open(&r.world, 60, NULL), OK);
        assert_int_equal(strategy_start(&r.strategy, r.world, &options, r.optimizer, 1, NULL), OK);
        r.strategy->operations->report(r.strategy, &report);
        assert_int_equal(report.copies, rows[i].copies);
        close_run(&r);
    }
}

/*
 * network_train() in the threads after the first: held until the moment that a test is about, and what it returned.
 * Linked in with -Wl,--wrap.
 */
enum moment { AT_ONCE, FIRST_HAS_LEFT, FIRST_WAITS };
static struct {
    pthread_t first;
    enum moment moment;
    atomic_int left, looked; /* by the first thread: 1: it left; times it was asked, while it waited, and wants to */
    atomic_int trained;      /* 1: it has trained its part */
    atomic_int whole;        /* parts of others that were trained to the end */
} held;

int __real_network_train(struct network *n, const struct batch *b, uint64_t seed, const struct gradient_sink *sink,
                         struct score *score);
int __wrap_network_train(struct network *n, const struct batch *b, uint64_t seed, const struct gradient_sink *sink,
                         struct score *score);

int __wrap_network_train(struct network *n, const struct batch *b, uint64_t seed, const struct gradient_sink *sink,
                         struct score *score)
{
    const int first = held.moment == AT_ONCE || pthread_equal(held.first, pthread_self());
    const double begun = clock_monotonic();
    int whole;

    while (!first && clock_monotonic() - begun < 60 &&
           (held.moment == FIRST_HAS_LEFT ? !atomic_load(&held.left) : atomic_load(&held.looked) < 2))
        sched_yield();
    whole = __real_network_train(n, b, seed, sink, score);
    if (first && held.moment != AT_ONCE)
        atomic_store(whole ? &held.trained : &held.left, 1);
    else if (!first)
        atomic_fetch_add(&held.whole, whole);
    return whole;
}

static int leave_at_once(void *context)
{
    (void)context;
    return 1;
}

/* The second call says that the first one's answer was taken. */
static int leave_while_waiting(void *context)
{
    (void)context;
    return atomic_load(&held.trained) && atomic_fetch_add(&held.looked, 1) >= 0;
}

/* When the first thread leaves, in its own part or while it waits for the others, no other one goes on. */
static void test_all_leave(void **state)
{
    const struct scene s = { .model = model_find("lenet"), .weights = "copied", .threads = 3, .unit = 8 };
    struct run r = open_run(&s);
    struct tally tally;

    (void)state;
    held.first = pthread_self();
    for (held.moment = FIRST_HAS_LEFT; held.moment <= FIRST_WAITS; held.moment++) {
        network_set_leave(r.network, held.moment == FIRST_WAITS ? leave_while_waiting : leave_at_once, NULL);
        assert_int_equal(take_step(&r, &tally, NULL), 0);
        assert_int_equal(atomic_load(&held.trained), held.moment == FIRST_WAITS);
        assert_int_equal(atomic_load(&held.whole), 0);
    }
    held.moment = AT_ONCE;
    close_run(&r);
}

static int leave_now(void *context)
{
    return --*(int *)context < 0;
}

/* A step left at any moment is applied by nobody; the next ones are as if it had not been. */
static void test_left(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        const struct scene s = { .model = model_find("lenet"),
                                 .weights = shared ? "shared" : "copied",
                                 .optimizer = OPTIMIZER_MOMENTUM,
                                 .threads = 3,
                                 .unit = 4,
                                 .shards = 7 };
        struct run r = open_run(&s);
        struct reference one = open_reference(&s);
        struct tally tally;
        int patience, left = 0, done = 0;

        for (int at = 0; !done; at++) {
            patience = at;
            network_set_leave(r.network, leave_now, &patience);
            done = take_step(&r, &tally, NULL);
            assert_true(done == 0 || done == 1);
            assert_int_equal(tally.flags, done ? 0 : TALLY_LEFT);
            if (!done)
                assert_same_state(r.optimizer, one.optimizer);
            left += !done;
        }
        assert_true(left >= 3);
        network_set_leave(r.network, NULL, NULL);
        assert_int_equal(take_step(&r, &tally, NULL), 1);
        reference_step(&one, &s, 0);
        reference_step(&one, &s, 1);
        assert_same_state(r.optimizer, one.optimizer);
        close_reference(&one, &s);
        close_run(&r);
    }
}

/* What changes one copy of the weights is found within two steps, or at the end. */
static void test_replicas_differ(void **state)
{
    (void)state;
    for (int at = 0; at <= STEPS; at++)
        for (int shared = 0; shared < 2; shared++) {
            const struct scene s = {
                .model = model_find("lenet"), .weights = shared ? "shared" : "copied", .threads = 3, .unit = 2
            };
            struct run r = open_run(&s);
            struct error e = { 0 };
            struct tally tally;
            int rc = 1;

            for (int64_t t = 0; t < STEPS && rc == 1; t++) {
                if (t == at)
                    network_parameters(r.network)[3] += 1;
                rc = take_step(&r, &tally, &e);
            }
            if (at == STEPS)
                network_parameters(r.network)[3] += 1;
            if (rc == 1)
                rc = r.strategy->operations->finish(r.strategy, &e);
            assert_int_equal(rc, shared ? OK : ERR_CORRUPT);
            if (!shared)
                assert_string_equal(
                    e.message,
                    at == STEPS ? "replicas differ after the last step: the weights of thread 1, 2 are not those of "
                                  "thread 0"
                    : at == 0   ? "replicas differ before step 0: the weights of thread 1, 2 are not those of thread 0"
                                : "replicas differ before step 2: the weights of thread 1, 2 are not those of thread "
                                  "0");
            close_run(&r);
        }
}

static void test_refused(void **state)
{
    struct scene s = { .model = model_find("lenet"), .weights = "copied", .threads = 2, .unit = 1 };
    struct strategy_options o = options_of(&s);
    struct error e = { 0 };
    char text[64];

    (void)state;
    assert_int_equal(o.kind->workers(&o, 1, NULL), 2);
    o.kind->describe(&o, 1, text, sizeof text);
    assert_string_equal(text, "2 threads, copied weights");
    assert_int_equal(o.kind->workers(&o, 3, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "3 ranks were started; use mpi or ps, or start it without mpirun"));
    s.threads = 0;
    o = options_of(&s);
    assert_int_equal(o.kind->workers(&o, 1, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "needs --threads N"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),       cmocka_unit_test(test_batch_statistics),
        cmocka_unit_test(test_micro_shards),    cmocka_unit_test(test_copies_are_counted),
        cmocka_unit_test(test_all_leave),       cmocka_unit_test(test_left),
        cmocka_unit_test(test_replicas_differ), cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
