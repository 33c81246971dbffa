/* Each layer in a small network of its own, against central differences, in the double build. */
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 7, WIDTH = 6, CHANNELS = 2, CLASSES = 3, COUNT = 5 };

static const struct kernel_options wide = { INITIAL_NORMAL, 0.5, 0 };
static const struct window tall_window = { 7, 1, 1, 1, 0, 0, 0, 0, PADDING_SAME };
static const struct window broad_window = { 1, 7, 1, 1, 0, 0, 0, 0, PADDING_SAME };
static const struct window uneven_window = { 3, 5, 2, 1, 2, 0, 1, 3, PADDING_EXPLICIT };

static const struct batch_norm_options norm_alone = { .epsilon = 0.001, .slope = 1 };
static const struct batch_norm_options norm_leaky = { .epsilon = 0.001, .slope = 0.1, .debias = 1 };
static const struct batch_norm_options norm_relu = { .epsilon = 0.001, .slope = 0 };
static const struct batch_norm_options norm_bare = { .epsilon = 0.001, .slope = 1, .unbiased = 1, .leave_gamma = 1 };

/* What every case stands on, so that the gradient passes through the layer to something with weights. */
static int start(struct network_builder *b, int channels)
{
    const int x = network_builder_images(b);

    return network_builder_convolution(b, x, "start", channels, window_same(3, 1), &wide);
}

static int finish(struct network_builder *b, int x)
{
    x = network_builder_dense(b, x, "finish", CLASSES, &wide);
    x = network_builder_bias(b, x, "finish/biases", 0.1, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

#define BUILD(name, statement) \
    static int build_##name(struct network_builder *b, struct error *e) \
    { \
        int x = start(b, 4); \
        (void)e; \
        statement; \
        return finish(b, x); \
    }

BUILD(dense, x = network_builder_dense(b, x, "middle", 6, &wide))
BUILD(bias, x = network_builder_bias(b, x, "bias", 0.2, RELU_NONE))
BUILD(relu, x = network_builder_bias(b, x, "bias", 0.2, RELU))
BUILD(leaky, x = network_builder_leaky(b, x, 0.1, LEAKY_GRADIENT_ONE))
BUILD(leaky_tf, x = network_builder_leaky(b, x, 0.2, LEAKY_GRADIENT_SLOPE))
BUILD(same, x = network_builder_convolution(b, x, "middle", 5, window_same(3, 1), &wide))
BUILD(same_strided, x = network_builder_convolution(b, x, "middle", 3, window_same(3, 2), &wide))
BUILD(valid, x = network_builder_convolution(b, x, "middle", 5, window_valid(5, 1), &wide))
BUILD(valid_strided, x = network_builder_convolution(b, x, "middle", 2, window_valid(2, 3), &wide))
BUILD(one_by_one, x = network_builder_convolution(b, x, "middle", 5, window_same(1, 2), &wide))
BUILD(tall, x = network_builder_convolution(b, x, "middle", 3, tall_window, &wide))
BUILD(broad, x = network_builder_convolution(b, x, "middle", 3, broad_window, &wide))
BUILD(uneven, x = network_builder_convolution(b, x, "middle", 3, uneven_window, &wide))
BUILD(max_pool, x = network_builder_max_pool(b, x, window_same(3, 2)))
BUILD(max_pool_valid, x = network_builder_max_pool(b, x, window_valid(2, 2)))
BUILD(max_pool_uneven, x = network_builder_max_pool(b, x, uneven_window))
BUILD(average_pool, x = network_builder_average_pool(b, x, window_same(3, 2)))
BUILD(average_pool_valid, x = network_builder_average_pool(b, x, window_valid(2, 2)))
BUILD(average_pool_uneven, x = network_builder_average_pool(b, x, uneven_window))
BUILD(widen, x = network_builder_widen(b, x, 7))
BUILD(lstm, x = network_builder_lstm(b, x, "lstm", 5, LSTM_GIVES_LAST, 1.0, &wide))
BUILD(lstm_every, x = network_builder_lstm(b, x, "lstm", 5, LSTM_GIVES_EVERY, 1.0, &wide))
BUILD(lstm_later, x = network_builder_lstm(b, x, "lstm", 5, LSTM_GIVES_LATER, 1.0, &wide))
BUILD(stack, int parts[3] = { x }; parts[1] = network_builder_dense_each(b, x, "middle", 4, &wide); parts[2] = parts[0];
      x = network_builder_stack(b, parts, 3))
BUILD(lstm_twice, x = network_builder_lstm(b, x, "lstm", 5, LSTM_GIVES_EVERY, 1.0, &wide);
      x = network_builder_dropout(b, x, 0.7); x = network_builder_lstm(b, x, "lstm2", 4, LSTM_GIVES_EVERY, 0.5, &wide);
      x = network_builder_dense_each(b, x, "each", 3, &wide))
BUILD(dense_each, x = network_builder_dense_each(b, x, "each", 3, &wide))
BUILD(relu_alone, x = network_builder_relu(b, x))
BUILD(relu_leaky, x = network_builder_relu(b, network_builder_leaky(b, x, 0.1, LEAKY_GRADIENT_ONE)))
BUILD(relu_normed, x = network_builder_relu(b, network_builder_batch_norm(b, x, "norm", &norm_bare)))
BUILD(batch_norm_bare, x = network_builder_batch_norm(b, x, "norm", &norm_bare))
BUILD(global_average_pool, x = network_builder_global_average_pool(b, x))
BUILD(bias_drawn, x = network_builder_bias_drawn(b, x, "bias", &wide, RELU))
BUILD(lstm_one_step, x = network_builder_dense(b, x, "middle", 6, &wide);
      x = network_builder_lstm(b, x, "lstm", 3, LSTM_GIVES_LAST, 0, &wide))
BUILD(lrn, x = network_builder_lrn(b, x, 1, 1.0, 0.3, 0.75))
BUILD(lrn_power, x = network_builder_lrn(b, x, 2, 2.0, 0.2, 0.6))
BUILD(dropout, x = network_builder_dropout(b, x, 0.5))
BUILD(batch_norm, x = network_builder_batch_norm(b, x, "norm", &norm_alone))
BUILD(batch_norm_leaky, x = network_builder_batch_norm(b, x, "norm", &norm_leaky))
BUILD(batch_norm_bias,
      x = network_builder_bias(b, network_builder_batch_norm(b, x, "norm", &norm_alone), "bias", 0.1, RELU))
BUILD(concat_twice, x = network_builder_concat(b, (const int[]){ x, x }, 2))
BUILD(concat_images, int y = network_builder_concat(b, (const int[]){ x, network_builder_images(b), x }, 3);
      x = network_builder_convolution(b, x, "middle", 2, window_same(3, 1), &wide);
      x = network_builder_concat(b, (const int[]){ x, y }, 2))
BUILD(concat_dense, int left = network_builder_dense(b, x, "left", 3, &wide);
      x = network_builder_dense(b, x, "right", 2, &wide); x = network_builder_concat(b, (const int[]){ left, x }, 2))
BUILD(batch_norm_dense,
      x = network_builder_batch_norm(b, network_builder_dense(b, x, "middle", 6, &wide), "norm", &norm_leaky))

/* A shortcut around a layer: the gradient memory of both inputs of the sum is one. */
static int build_residual(struct network_builder *b, struct error *e)
{
    const int x = start(b, 4);
    int y = network_builder_batch_norm(b, x, "norm", &norm_leaky);

    (void)e;
    y = network_builder_convolution(b, y, "middle", 4, window_same(3, 1), &wide);
    y = network_builder_add(b, y, x);
    y = network_builder_batch_norm(b, y, "norm2", &norm_leaky);
    return finish(b, y);
}

/* The shortcut starts behind the normalisation, is pooled and widened, and joins twice. */
static int build_shared(struct network_builder *b, struct error *e)
{
    const int x = network_builder_batch_norm(b, start(b, 4), "norm", &norm_leaky);
    int y = network_builder_convolution(b, x, "middle", 6, window_same(3, 2), &wide), s;

    (void)e;
    y = network_builder_batch_norm(b, y, "norm2", &norm_leaky);
    y = network_builder_convolution(b, y, "middle2", 6, window_same(3, 1), &wide);
    s = network_builder_average_pool(b, x, window_same(2, 2));
    s = network_builder_widen(b, s, 6);
    y = network_builder_add(b, y, s);
    s = network_builder_max_pool(b, x, window_same(2, 2));
    y = network_builder_add(b, y, network_builder_widen(b, s, 6));
    return finish(b, y);
}

/* Gradients that cannot share memory: what is added is used again before the other summand's maker. */
static int build_crossed(struct network_builder *b, struct error *e)
{
    const int x = start(b, 4);
    int first = network_builder_convolution(b, x, "first", 4, window_same(3, 1), &wide);
    int second = network_builder_convolution(b, x, "second", 4, window_same(3, 1), &wide);
    int third = network_builder_convolution(b, second, "third", 4, window_same(3, 1), &wide);

    (void)e;
    first = network_builder_add(b, first, second);
    third = network_builder_add(b, third, first);
    return finish(b, third);
}

/* Layers in place on a value whose sign an earlier one reads, and a bias that reads none below a sum. */
static int build_in_place(struct network_builder *b, struct error *e)
{
    const int x = start(b, 4);
    int y = network_builder_convolution(b, x, "middle", 4, window_same(3, 1), &wide);

    (void)e;
    y = network_builder_add(b, network_builder_bias(b, y, "bias", 0.1, RELU_NONE), x);
    y = network_builder_bias(b, y, "bias2", 0.1, RELU);
    y = network_builder_dropout(b, network_builder_leaky(b, y, 0.1, LEAKY_GRADIENT_ONE), 0.7);
    return finish(b, y);
}

/* Side by side: what has other consumers before and after, what waits for the whole batch, and one value twice. What
 * comes of it is changed in place. */
static int build_concat(struct network_builder *b, struct error *e)
{
    const int x = start(b, 4), before = network_builder_convolution(b, x, "before", 2, window_same(3, 1), &wide);
    const int norm = network_builder_batch_norm(b, x, "norm", &norm_leaky);
    const int images = network_builder_images(b), inputs[] = { norm, before, x, images, x };
    int y = network_builder_concat(b, inputs, 5), z;

    (void)e;
    y = network_builder_bias(b, y, "bias", 0.1, RELU);
    z = network_builder_convolution(b, network_builder_concat(b, &y, 1), "left", 3, window_same(3, 2), &wide);
    y = network_builder_add(b, z, network_builder_convolution(b, y, "right", 3, window_same(3, 2), &wide));
    z = network_builder_convolution(b, x, "after", 3, window_same(3, 2), &wide);
    return finish(b, network_builder_concat(b, (const int[]){ y, z }, 2));
}

/* The second summand is also the second beside another value: its gradient is not finished with the sum's. */
static int build_concat_sum(struct network_builder *b, struct error *e)
{
    const int x = start(b, 4), other = network_builder_convolution(b, x, "other", 4, window_same(3, 1), &wide);
    const int changed = network_builder_convolution(b, x, "changed", 4, window_same(3, 1), &wide);
    const int y = network_builder_concat(b, (const int[]){ x, other }, 2);

    (void)e;
    return finish(b, network_builder_concat(b, (const int[]){ y, network_builder_add(b, changed, other) }, 2));
}

/* A label for each step of a sequence: of weight 1, 0.5 or 0. */
static int build_sequence(struct network_builder *b, struct error *e)
{
    int x = network_builder_lstm(b, start(b, 4), "lstm", 5, LSTM_GIVES_EVERY, 1, &wide);

    (void)e;
    x = network_builder_dropout(b, x, 0.7);
    x = network_builder_dense_each(b, x, "finish", CLASSES, &wide);
    x = network_builder_bias(b, x, "finish/biases", 0.1, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

/* The same of a layer whose layout is that of convolutions. */
static int build_pixels(struct network_builder *b, struct error *e)
{
    (void)e;
    network_builder_cross_entropy(
        b, network_builder_convolution(b, start(b, 4), "finish", CLASSES, window_same(3, 1), &wide));
    return OK;
}

/* Two batch norms, one of them with a ReLU, and a shortcut past the second. */
static int build_norms(struct network_builder *b, struct error *e)
{
    int x = network_builder_batch_norm(b, start(b, 4), "one", &norm_relu), y;

    (void)e;
    y = network_builder_convolution(b, x, "middle", 4, window_same(3, 1), &wide);
    y = network_builder_batch_norm(b, y, "two", &norm_alone);
    return finish(b, network_builder_relu(b, network_builder_add(b, y, x)));
}

struct check {
    struct network *n;
    struct batch batch;
    real images[COUNT * HEIGHT * WIDTH * CHANNELS];
    int32_t labels[COUNT * HEIGHT * WIDTH];
    float weights[COUNT * HEIGHT * WIDTH];
};

static double loss(struct check *c)
{
    struct score result;

    network_train(c->n, at_step(&c->batch, 9), 4, NULL, &result);
    return result.loss;
}

/* Kinks spoil a difference quotient; see test_gradient_models.c. */
static double disagreement(struct check *c, size_t i, double gradient, double scale)
{
    static const double steps[] = { 1e-5, 1e-6, 1e-4, 1e-7 };
    real *w = &network_parameters(c->n)[i];
    const real kept = *w;
    double best = INFINITY;

    for (size_t k = 0; k < sizeof steps / sizeof *steps && best > 1e-6; k++) {
        double up, down;
        *w = kept + (real)steps[k];
        up = loss(c);
        *w = kept - (real)steps[k];
        down = loss(c);
        best = fmin(best, fabs((up - down) / (2 * steps[k]) - gradient) / fmax(fabs(gradient), scale));
    }
    *w = kept;
    return best;
}

/* labels: of a sample; 0: one, which has no weight. frozen: scopes that have no gradient; NULL: none. */
static void check_layer(const char *name, int labels, const char *frozen,
                        int (*build)(struct network_builder *b, struct error *e))
{
    const struct model m = { .name = name,
                             .height = HEIGHT,
                             .width = WIDTH,
                             .channels = CHANNELS,
                             .classes = CLASSES,
                             .labels = labels,
                             .frozen = frozen,
                             .build = build };
    struct error e = { 0 };
    struct random r;
    struct check *c = calloc(1, sizeof *c);
    size_t count;

    assert_non_null(c);
    if (network_new(&c->n, &m, COUNT, &e) < 0)
        fail_msg("%s: %s", name, e.message);
    network_initialize(c->n, 1);
    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof c->images / sizeof *c->images; i++)
        c->images[i] = (real)random_normal(&r);
    for (int i = 0; i < COUNT * model_labels(&m); i++)
        c->labels[i] = (int32_t)random_below(&r, CLASSES);
    for (size_t i = 0; i < network_parameter_count(c->n); i++)
        network_parameters(c->n)[i] += (real)(0.1 * random_normal(&r));
    c->batch = images_batch(&m, c->images, c->labels, NULL, COUNT);
    for (int i = 0; i < COUNT * labels; i++) {
        c->weights[i] = (float)(i % 3) / 2;
        if (i % 3 == 0)
            c->labels[i] = -1; /* padding, which nobody reads */
    }
    if (labels) {
        c->batch.fields[FIELD_LABELS] = (struct field){ c->labels, ELEMENT_INT32, 2, { COUNT, labels } };
        c->batch.fields[FIELD_WEIGHTS] = (struct field){ c->weights, ELEMENT_FLOAT32, 2, { COUNT, labels } };
        c->batch.field_count = FIELD_WEIGHTS + 1;
    }

    real *gradient = calloc(network_parameter_count(c->n), sizeof *gradient);
    assert_non_null(gradient);
    loss(c);
    memcpy(gradient, network_exchange(c->n), network_parameter_count(c->n) * sizeof *gradient);
    const struct variable *v = network_variables(c->n, &count);
    for (size_t i = 0; i < count; i++) {
        double square = 0;
        if (v[i].kind != VARIABLE_WEIGHT)
            continue;
        assert_int_equal(v[i].frozen, model_in_scope(frozen, v[i].name));
        for (size_t k = 0; k < v[i].count; k++)
            square += (double)gradient[v[i].offset + k] * (double)gradient[v[i].offset + k];
        assert_true(v[i].frozen ? square == 0 : square > 0);
        if (v[i].frozen)
            continue;
        for (size_t k = 0; k<v[i].count; k += v[i].count> 60 ? 1 + v[i].count / 60 : 1) {
            const size_t at = v[i].offset + k;
            const double off = disagreement(c, at, (double)gradient[at], sqrt(square / (double)v[i].count));
            if (off > 1e-5)
                fail_msg("%s: %s[%zu]: gradient %.12g is off by %.3g", name, v[i].name, k, (double)gradient[at], off);
        }
    }
    network_free(c->n);
    free(gradient);
    free(c);
}

static void layers(void **state)
{
#define CASE(name) \
    { \
#name, build_##name \
    }
    static const struct {
        const char *name;
        int (*build)(struct network_builder *b, struct error *e);
    } cases[] = {
        CASE(dense),
        CASE(bias),
        CASE(relu),
        CASE(leaky),
        CASE(leaky_tf),
        CASE(same),
        CASE(same_strided),
        CASE(valid),
        CASE(valid_strided),
        CASE(one_by_one),
        CASE(tall),
        CASE(broad),
        CASE(uneven),
        CASE(max_pool),
        CASE(max_pool_valid),
        CASE(max_pool_uneven),
        CASE(average_pool),
        CASE(average_pool_valid),
        CASE(average_pool_uneven),
        CASE(widen),
        CASE(lstm),
        CASE(lstm_one_step),
        CASE(bias_drawn),
        CASE(global_average_pool),
        CASE(batch_norm_bare),
        CASE(relu_normed),
        CASE(relu_leaky),
        CASE(relu_alone),
        CASE(dense_each),
        CASE(lstm_twice),
        CASE(lstm_every),
        CASE(lstm_later),
        CASE(stack),
        CASE(lrn),
        CASE(lrn_power),
        CASE(dropout),
        CASE(batch_norm),
        CASE(batch_norm_leaky),
        CASE(batch_norm_bias),
        CASE(batch_norm_dense),
        CASE(residual),
        CASE(shared),
        CASE(crossed),
        CASE(in_place),
        CASE(concat_twice),
        CASE(concat_images),
        CASE(concat_dense),
        CASE(concat),
        CASE(concat_sum),
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_layer(cases[i].name, 0, NULL, cases[i].build);
    print_message("%zu layers\n", sizeof cases / sizeof *cases);
}

static void several_labels(void **state)
{
    (void)state;
    check_layer("sequence", HEIGHT, NULL, build_sequence);
    check_layer("pixels", HEIGHT * WIDTH, NULL, build_pixels);
}

/* Frozen before, among and behind what learns; a batch norm with moving statistics, and one of which only a part is
 * frozen, that keeps those of the batch. */
static void frozen_scopes(void **state)
{
    static const char *const scopes[] = {
        "start",         "start,one", "one", "one/beta", "two,finish", "middle", "start,one,middle,two",
        "finish/biases", "two/gamma",
    };

    (void)state;
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
        check_layer(scopes[i], 0, scopes[i], build_norms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers),
        cmocka_unit_test(several_labels),
        cmocka_unit_test(frozen_scopes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
