/* Gradients of the whole models against central differences, in the double build. */
#include "base/random.h"
#include "model/network.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check {
    struct network *n;
    struct batch batch;
    real *images;
    int32_t labels[8];
    int64_t samples[8];
};

static void set_up(struct check *c, const char *name, int count)
{
    struct error e = { 0 };
    const struct model *m = model_find(name);
    const size_t size = (size_t)count * (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    struct random r;

    if (network_new(&c->n, m, count, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(c->n, 3);
    c->images = malloc(size * sizeof *c->images);
    assert_non_null(c->images);
    random_init(&r, 5, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < size; i++)
        c->images[i] = (real)random_normal(&r);
    for (int i = 0; i < count; i++) {
        c->labels[i] = (int32_t)random_below(&r, (uint64_t)m->classes);
        c->samples[i] = 1000 + 3 * i;
    }
    c->batch = images_batch(m, c->images, c->labels, c->samples, count);
    /* Away from the initial 0 and 1, where a mistake in beta or a bias could hide. */
    for (size_t i = 0; i < network_parameter_count(c->n); i++)
        network_parameters(c->n)[i] += (real)(0.02 * random_normal(&r));
}

static void tear_down(struct check *c)
{
    network_free(c->n);
    free(c->images);
}

static double loss(struct check *c)
{
    struct score result;

    network_train(c->n, at_step(&c->batch, 2), 11, NULL, &result);
    return result.loss;
}

/*
 * The difference quotient along one weight. A kink (ReLU, max pool) within the step spoils it, so it is taken with
 * several steps, and the one that agrees best counts: a wrong gradient agrees with none.
 */
static double disagreement(struct check *c, size_t i, double gradient, double scale)
{
    static const double steps[] = { 1e-4, 1e-5, 1e-6, 1e-7 };
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

static void check_model(const char *name, int count, size_t samples)
{
    struct check c;
    size_t variables, checked = 0;
    const struct variable *v;
    double worst = 0;

    set_up(&c, name, count);
    v = network_variables(c.n, &variables);
    real *gradient = malloc(network_parameter_count(c.n) * sizeof *gradient);
    assert_non_null(gradient);
    loss(&c);
    memcpy(gradient, network_exchange(c.n), network_parameter_count(c.n) * sizeof *gradient);
    for (size_t i = 0; i < variables; i++) {
        struct random r;
        double square = 0;

        if (v[i].kind != VARIABLE_WEIGHT)
            continue;
        for (size_t k = 0; k < v[i].count; k++)
            square += (double)gradient[v[i].offset + k] * (double)gradient[v[i].offset + k];
        /* A small element is held to the size of the variable's elements: its own digits drown in the loss's. */
        const double scale = sqrt(square / (double)v[i].count);
        assert_true(scale > 0);
        random_init(&r, 17, RANDOM_TEST, 1, i);
        for (size_t k = 0; k < samples && k < v[i].count; k++) {
            const size_t at = v[i].offset + (size_t)random_below(&r, v[i].count);
            const double off = disagreement(&c, at, (double)gradient[at], scale);
            if (off > 1e-5)
                fail_msg("%s, element %zu: gradient %.12g is off by %.3g", v[i].name, at - v[i].offset,
                         (double)gradient[at], off);
            worst = fmax(worst, off);
            checked++;
        }
    }
    print_message("%s: %zu elements, worst relative error %.2g\n", name, checked, worst);
    free(gradient);
    tear_down(&c);
}

static void lenet(void **state)
{
    (void)state;
    check_model("lenet", 3, 20);
}

static void cifar10_cnn(void **state)
{
    (void)state;
    check_model("cifar10_cnn", 2, 4);
}

static void resnet32(void **state)
{
    (void)state;
    check_model("resnet32", 2, 1);
}

static void mnist_cnn(void **state)
{
    (void)state;
    check_model("mnist_cnn", 1, 1);
}

static void mnist_lstm(void **state)
{
    (void)state;
    check_model("mnist_lstm", 3, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lenet), cmocka_unit_test(cifar10_cnn),
                                        cmocka_unit_test(resnet32), cmocka_unit_test(mnist_cnn),
                                        cmocka_unit_test(mnist_lstm) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
