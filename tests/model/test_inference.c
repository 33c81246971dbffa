/* Networks for inference alone beside those that can train, and their own promises. The float build. */
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 133, CLASSES = 10 }; /* more than run at a time, and no whole number of slices */

static const struct kernel_options plain = { INITIAL_HE, 0, 0 };

static int convolution(struct network_builder *b, int x, const char *name, int channels, struct window window)
{
    return network_builder_convolution(b, x, name, channels, window, &plain);
}

static int norm(struct network_builder *b, int x, const char *scope, double slope)
{
    return network_builder_batch_norm(b, x, scope, &(struct batch_norm_options){ .epsilon = 0.001, .slope = slope });
}

static int finish(struct network_builder *b, int x)
{
    network_builder_cross_entropy(b, network_builder_dense(b, x, "finish", CLASSES, &plain));
    return OK;
}

/* What comes after a convolution in every order: norm, sum, ReLU, bias; values that more than one layer reads; images
 * with odd sizes; windows that Winograd's algorithm takes, and others; channels in whole vectors, and not. */
static int build_mixed(struct network_builder *b, struct error *e)
{
    int x = convolution(b, network_builder_images(b), "start", 32, window_same(3, 1)), y, z;

    (void)e;
    x = norm(b, x, "n0", 0);
    y = norm(b, convolution(b, x, "c1", 32, window_same(3, 1)), "n1", 0);
    y = norm(b, convolution(b, y, "c2", 32, window_same(5, 1)), "n2", 1);
    x = network_builder_relu(b, network_builder_add(b, y, x)); /* as ResNet-50 */
    y = convolution(b, norm(b, x, "n3", 0.1), "c3", 64, window_same(3, 2));
    y = convolution(b, norm(b, y, "n4", 0.1), "c4", 64, window_same(3, 1));
    z = network_builder_average_pool(b, x, window_same(2, 2));
    x = network_builder_add(b, y, network_builder_widen(b, z, 64)); /* as ResNet-32 */
    y = convolution(b, norm(b, x, "n5", 0.1), "c5", 64, window_same(3, 1));
    x = network_builder_add(b, y, x);
    y = convolution(b, x, "twice", 64, window_same(3, 1)); /* which two layers read */
    x = network_builder_add(b, norm(b, y, "n6", 0.2), y);
    z = network_builder_bias(b, convolution(b, x, "c6", 32, window_same(1, 1)), "b6", 0.1, RELU);
    y = network_builder_relu(b, convolution(b, z, "c7", 16, window_same(3, 1)));
    x = network_builder_concat(b, (const int[]){ y, z, y }, 3);
    x = network_builder_max_pool(b, network_builder_lrn(b, x, 4, 1, 0.001, 0.75), window_same(3, 2));
    x = convolution(b, x, "c8", 11, window_same(3, 1));
    return finish(b, norm(b, convolution(b, x, "c9", 16, window_same(3, 1)), "n9", 0.3));
}

static int build_small(struct network_builder *b, struct error *e)
{
    (void)e;
    return finish(b, norm(b, convolution(b, network_builder_images(b), "only", 16, window_valid(3, 1)), "n", 1));
}

static struct model mixed = {
    .name = "mixed", .height = 19, .width = 14, .channels = 3, .classes = CLASSES, .build = build_mixed
};
static struct model small = {
    .name = "small", .height = 3, .width = 3, .channels = 16, .classes = CLASSES, .build = build_small
};

/* Weights, and moving statistics that are not those of the beginning. */
static void draw(struct network *n)
{
    real *statistics = network_statistics(n), *parameters = network_parameters(n);
    const struct variable *v;
    struct random r;
    size_t count;

    network_initialize(n, 5);
    random_init(&r, 11, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < network_statistic_count(n); i++)
        statistics[i] = (real)(statistics[i] == 0 ? 0.2 * random_normal(&r) : 0.5 + random_uniform(&r));
    v = network_variables(n, &count);
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; v[k].kind == VARIABLE_WEIGHT && v[k].rank == 1 && i < v[k].count; i++)
            parameters[v[k].offset + i] += (real)(0.2 * random_normal(&r));
}

struct both {
    const struct model *model;
    struct network *trains, *infers;
    size_t image, row;
    real *images, *wanted, *got;
};

static void open_both(struct both *t, const struct model *m)
{
    struct error e = { 0 };
    struct random r;

    t->model = m;
    if (network_new(&t->trains, m, COUNT, &e) < 0 || network_new_for_inference(&t->infers, m, COUNT, &e) < 0)
        fail_msg("%s", e.message);
    draw(t->trains);
    draw(t->infers);
    t->image = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    t->row = (size_t)m->classes;
    t->images = reals_new(COUNT * t->image);
    t->wanted = reals_new(COUNT * t->row);
    t->got = reals_new(COUNT * t->row);
    assert_true(t->images && t->wanted && t->got);
    random_init(&r, 3, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < COUNT * t->image; i++)
        t->images[i] = (real)random_normal(&r);
}

static void close_both(struct both *t)
{
    network_free(t->trains);
    network_free(t->infers);
    free(t->images);
    free(t->wanted);
    free(t->got);
}

static void infer(const struct both *t, struct network *n, int first, int count, real *logits)
{
    const struct field input = model_input(t->model, t->images + (size_t)first * t->image, count);

    network_infer(n, &input, logits);
}

static double difference(const real *a, const real *b, size_t n)
{
    double square = 0, norm_square = 0;

    for (size_t i = 0; i < n; i++) {
        square += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm_square += (double)b[i] * (double)b[i];
    }
    return sqrt(square / norm_square);
}

static void check_model(const struct model *m, double bound)
{
    struct both t;

    open_both(&t, m);
    infer(&t, t.trains, 0, COUNT, t.wanted);
    infer(&t, t.infers, 0, COUNT, t.got);
    const double apart = difference(t.got, t.wanted, COUNT * t.row);
    if (!(apart < bound))
        fail_msg("%s: logits differ by %g", m->name, apart);
    for (int size = 1; size < COUNT;
         size = size * 3 + 1) { /* what comes beside an image changes its last bits at most */
        memset(t.wanted, 0, COUNT * t.row * sizeof *t.wanted);
        for (int first = 0; first < COUNT; first += size)
            infer(&t, t.infers, first, COUNT - first < size ? COUNT - first : size, t.wanted + (size_t)first * t.row);
        assert_true(difference(t.wanted, t.got, COUNT * t.row) < 1e-6);
    }
    close_both(&t);
}

static void as_networks_that_train(void **state)
{
    static const char *const names[] = { "lenet", "cifar10_cnn", "resnet32" };

    (void)state;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        check_model(model_find(names[k]), 1e-5);
    check_model(&mixed, 1e-5);
    check_model(&small, 1e-5);
}

/* Scores, and weights that another network has. */
static void scores_and_shares(void **state)
{
    struct both t;
    struct score of_trains, of_infers;
    int32_t labels[COUNT];
    struct batch batch;

    (void)state;
    open_both(&t, &mixed);
    for (int i = 0; i < COUNT; i++)
        labels[i] = i % CLASSES;
    batch = images_batch(&mixed, t.images, labels, NULL, COUNT);
    memset(network_parameters(t.infers), 0, network_parameter_count(t.infers) * sizeof(real));
    network_share(t.infers, t.trains);
    network_score(t.trains, &batch, &of_trains);
    network_score(t.infers, &batch, &of_infers);
    assert_true(fabs(of_infers.loss / of_trains.loss - 1) < 1e-5);
    assert_int_equal(of_infers.units, of_trains.units);
    assert_null(network_exchange(t.infers));
    close_both(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_networks_that_train),
        cmocka_unit_test(scores_and_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
