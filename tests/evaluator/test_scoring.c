/* Scoring by several threads: the same bits for any number of them, as one network gives; giving up; running again. */
#include "evaluator/score/scoring.h"

#include "base/random.h"
#include "evaluator/score/metrics/curves.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 101, SEED = 9 };

struct images {
    float *pixels;
    size_t width;
    int copies; /* 1: into the thread's room, as images that are made when they are wanted */
};

static const void *images_of(const void *context, size_t first, size_t count, void *room)
{
    const struct images *i = context;

    if (!i->copies)
        return i->pixels + first * i->width;
    return memcpy(room, i->pixels + first * i->width, count * i->width * sizeof(float));
}

static int32_t labels[EXAMPLES];

static void make(struct images *i, const struct model *m)
{
    struct random r;

    random_init(&r, SEED, RANDOM_TEST, 0, 0);
    i->width = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    i->pixels = aligned_alloc(64, (EXAMPLES * i->width * sizeof(float) + 63) / 64 * 64);
    assert_non_null(i->pixels);
    for (size_t k = 0; k < EXAMPLES * i->width; k++)
        i->pixels[k] = (float)random_normal(&r);
    for (size_t k = 0; k < EXAMPLES; k++)
        labels[k] = (int32_t)random_below(&r, (uint64_t)m->classes);
}

struct outcome {
    double loss;
    int64_t examples, correct, correct_top, confusion[100], curves[2 * 10 * CURVES_THRESHOLDS];
};

static struct outcome run(struct scoring *s)
{
    const struct classification *c;
    struct outcome o;

    memset(&o, 0, sizeof o);
    scoring_begin(s);
    while (scoring_step(s))
        assert_true(scoring_share(s) > 0);
    assert_true(scoring_share(s) == 1);
    scoring_end(s, &c, &o.loss);
    o.examples = c->examples;
    o.correct = c->correct;
    o.correct_top = *c->cells[METRIC_top5];
    memcpy(o.confusion, c->confusion, sizeof o.confusion);
    memcpy(o.curves, c->cells[METRIC_curves], sizeof o.curves);
    return o;
}

static struct scoring *make_scoring(const struct model *m, const struct images *i, int threads, uint64_t seed)
{
    const struct scoring_options options = { m, threads, 8, METRIC_ALL };
    const struct scoring_source source = { .input = images_of, .context = i, .labels = labels, .examples = EXAMPLES };
    struct scoring *s;

    assert_int_equal(scoring_new(&s, &options, &source, NULL), OK);
    network_initialize(scoring_network(s), seed);
    return s;
}

static void test_threads(void **state)
{
    static const char *const models[] = { "lenet", "cifar10_cnn" };

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const struct model *m = model_find(models[k]);
        struct outcome first, o;
        struct images i = { 0 };

        make(&i, m);
        for (int threads = 1; threads <= 5; threads++) {
            struct scoring *s;

            i.copies = threads % 2;
            s = make_scoring(m, &i, threads, SEED);
            for (int again = 0; again < 2; again++) {
                o = run(s);
                first = threads == 1 && !again ? o : first;
                assert_memory_equal(&o, &first, sizeof o);
            }
            scoring_free(s);
        }
        assert_int_equal(first.examples, EXAMPLES);
        free(i.pixels);
    }
}

/* The whole of it beside the network's own scoring in one batch. */
static void test_network(void **state)
{
    const struct model *m = model_find("lenet");
    struct batch batch;
    struct score want;
    struct images i = { 0 };
    struct network *n;
    struct outcome got;
    struct scoring *s;

    (void)state;
    make(&i, m);
    assert_int_equal(network_new(&n, m, EXAMPLES, NULL), OK);
    network_initialize(n, SEED);
    batch = images_batch(m, i.pixels, labels, NULL, EXAMPLES);
    network_score(n, &batch, &want);
    s = make_scoring(m, &i, 2, SEED);
    got = run(s);
    assert_int_equal(got.correct, want.hits);
    assert_true(got.loss > want.loss * (1 - 1e-6) && got.loss < want.loss * (1 + 1e-6));
    scoring_free(s);
    network_free(n);
    free(i.pixels);
}

/* Given up after a batch or two, and with other weights: what comes after is as if nothing had been before. */
static void test_given_up(void **state)
{
    const struct model *m = model_find("lenet");
    struct images i = { 0 };
    struct scoring *s, *fresh;
    struct outcome want, got;

    (void)state;
    make(&i, m);
    fresh = make_scoring(m, &i, 1, SEED);
    want = run(fresh);
    s = make_scoring(m, &i, 3, SEED + 1);
    for (int steps = 0; steps < 4; steps++) {
        scoring_begin(s);
        for (int k = 0; k < steps; k++)
            scoring_step(s);
        scoring_end(s, NULL, NULL);
    }
    network_initialize(scoring_network(s), SEED);
    got = run(s);
    assert_memory_equal(&got, &want, sizeof got);
    scoring_begin(s);
    scoring_step(s);
    scoring_free(s); /* in the middle of one */
    scoring_free(fresh);
    scoring_free(NULL);
    free(i.pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
