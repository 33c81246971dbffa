/* A decoder of captions in the double build: features beside words, by central differences, alone and in parts. */
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 9, STEPS = 4, FEATURES = 6, UNITS = 5, COUNT = 3 };

static int build(struct network_builder *b, struct error *e)
{
    const struct kernel_options plain = { INITIAL_NORMAL, 0.5, 0 };
    const int words = network_builder_images(b);
    int parts[2], x;

    (void)e;
    parts[0] = network_builder_dense(b, network_builder_image_features(b, words), "image", UNITS, &plain);
    parts[1] = network_builder_embedding(b, words, "map", WORDS, UNITS, &plain);
    x = network_builder_dropout(b, network_builder_stack(b, parts, 2), 0.7);
    x = network_builder_lstm(b, x, "lstm", UNITS, LSTM_GIVES_LATER, 1, &plain);
    x = network_builder_dropout(b, x, 0.7);
    network_builder_cross_entropy(b, network_builder_dense_each(b, x, "logits", WORDS, &plain));
    return OK;
}

static const struct model captions = { .name = "captions",
                                       .height = STEPS,
                                       .width = 1,
                                       .channels = 1,
                                       .classes = WORDS,
                                       .labels = STEPS,
                                       .features = FEATURES,
                                       .integers = 1,
                                       .build = build };

/* -1: behind the end of a sentence. */
static const int32_t words[COUNT * STEPS] = { 0, 3, 4, 8, 0, 3, -1, -1, 0, 7, 7, -1 };
static const int32_t labels[COUNT * STEPS] = { 3, 4, 8, 1, 3, 1, 0, 0, 7, 7, 1, 0 };
static const float weights[COUNT * STEPS] = { 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0 };
static float features[COUNT * FEATURES];

static struct batch make_batch(void)
{
    static const int64_t samples[COUNT] = { 0, 1, 2 };
    struct batch b = { .count = COUNT, .field_count = FIELD_FEATURES + 1, .samples = samples };
    struct random r;

    random_init(&r, 4, RANDOM_TEST, 0, 0);
    for (int i = 0; i < COUNT * FEATURES; i++)
        features[i] = (float)random_normal(&r);
    b.fields[FIELD_INPUT] = (struct field){ words, ELEMENT_INT32, 4, { COUNT, STEPS, 1, 1 } };
    b.fields[FIELD_LABELS] = (struct field){ labels, ELEMENT_INT32, 2, { COUNT, STEPS } };
    b.fields[FIELD_WEIGHTS] = (struct field){ weights, ELEMENT_FLOAT32, 2, { COUNT, STEPS } };
    b.fields[FIELD_FEATURES] = (struct field){ features, ELEMENT_FLOAT32, 2, { COUNT, FEATURES } };
    return b;
}

static struct network *new_network(const struct model *m)
{
    struct network *n = NULL;
    struct error e = { 0 };

    if (network_new(&n, m, COUNT, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(n, 1);
    return n;
}

static double loss(struct network *n, const struct batch *b)
{
    struct score s;

    assert_true(network_train(n, b, 2, NULL, &s));
    assert_int_equal(s.units, 9);
    assert_true(s.weight == 9);
    return s.loss;
}

static void differences(void **state)
{
    struct network *n = new_network(&captions);
    const struct batch b = make_batch();
    const size_t count = network_parameter_count(n);
    real *gradient = malloc(count * sizeof *gradient);

    (void)state;
    assert_non_null(gradient);
    loss(n, &b);
    memcpy(gradient, network_exchange(n), count * sizeof *gradient);
    for (size_t i = 0; i < count; i++) {
        real *w = &network_parameters(n)[i];
        const real kept = *w;
        double up, down;

        *w = kept + 1e-5;
        up = loss(n, &b);
        *w = kept - 1e-5;
        down = loss(n, &b);
        *w = kept;
        if (fabs((up - down) / 2e-5 - gradient[i]) > 1e-7)
            fail_msg("parameter %zu: %.9g instead of %.9g", i, gradient[i], (up - down) / 2e-5);
    }
    free(gradient);
    network_free(n);
}

/* Parts of a batch have the features of their own samples, in training and in inference. */
static void parts(void **state)
{
    struct network *n = new_network(&captions);
    const struct batch b = make_batch();
    real together[COUNT * STEPS * WORDS], alone[STEPS * WORDS];
    double sum = 0;
    struct score s;

    (void)state;
    network_infer_batch(n, &b, together);
    for (int i = 0; i < COUNT; i++) {
        const struct batch part = batch_part(&b, i, 1);

        network_infer_batch(n, &part, alone);
        for (int k = 0; k < STEPS * WORDS; k++)
            assert_true(fabs(alone[k] - together[i * STEPS * WORDS + k]) < 1e-12);
        network_train(n, &part, 2, NULL, &s);
        sum += s.loss;
    }
    assert_true(fabs(sum - loss(n, &b)) < 1e-9);
    network_score(n, &b, &s);
    assert_int_equal(s.units, 9);
    network_free(n);
}

/* Without the field they are 0. */
static void without(void **state)
{
    struct network *n = new_network(&captions);
    struct batch b = make_batch();
    real zeros[COUNT * STEPS * WORDS], none[COUNT * STEPS * WORDS];

    (void)state;
    memset(features, 0, sizeof features);
    network_infer_batch(n, &b, zeros);
    network_infer(n, &b.fields[FIELD_INPUT], none);
    assert_memory_equal(zeros, none, sizeof none);
    network_free(n);
}

static int build_refused(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_cross_entropy(b, network_builder_image_features(b, network_builder_images(b)));
    return OK;
}

static int build_uneven(struct network_builder *b, struct error *e)
{
    const struct kernel_options plain = { INITIAL_NORMAL, 0.5, 0 };
    const int in = network_builder_images(b);
    const int uneven[2] = { network_builder_image_features(b, in),
                            network_builder_embedding(b, in, "m", 3, 2, &plain) };

    (void)e;
    network_builder_cross_entropy(b, network_builder_stack(b, uneven, 2));
    return OK;
}

static void refuses(void **state)
{
    struct model m = captions;
    struct network *n = NULL;
    struct error e = { 0 };

    (void)state;
    m.features = 0;
    m.build = build_refused;
    assert_int_equal(network_new(&n, &m, 1, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "no features"));
    m.features = FEATURES;
    m.build = build_uneven;
    assert_int_equal(network_new(&n, &m, 1, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "differ in width or channels"));
    m.build = build_refused;
    m.integers = 0;
    assert_int_equal(network_new(&n, &m, 1, &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(differences), cmocka_unit_test(parts),
                                        cmocka_unit_test(without), cmocka_unit_test(refuses) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
