/* The optimizers against their formulas in double, and an update in parts against an update at once. */
#include "trainer/optimizers/optimizer.h"

#include "base/random.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, SAMPLES = 24 };

static struct network *network_of(const char *model)
{
    struct network *n;

    assert_int_equal(network_new(&n, model_find(model), 0, NULL), OK);
    network_initialize(n, 7);
    return n;
}

static struct optimizer *optimizer_of(struct network *n, enum optimizer_kind kind, double average, double clip)
{
    const struct optimizer_options options = {
        .kind = kind, .learning_rate = 0.05, .momentum = 0.9, .moving_average = average, .clip_norm = clip
    };
    struct optimizer *o;

    assert_int_equal(optimizer_new(&o, n, &options, NULL), OK);
    return o;
}

/* A sum over samples as training would give: gradients around 0, statistics positive; every seventh is 0. */
static void fill_sum(real *sum, size_t total, size_t parameters, int64_t step)
{
    struct random r;

    for (size_t i = 0; i < total; i++) {
        random_init(&r, 3, RANDOM_TEST, (uint64_t)step, i);
        sum[i] = (real)(i < parameters ? (i % 7 ? random_normal(&r) : 0)
                                       : (double)SAMPLES * (0.5 + random_uniform(&r)));
    }
    sum[total - 1] = SAMPLES;
}

/* of one element, in double */
struct reference {
    double w, slot1, slot2, average, biased;
};

static void reference_step(struct reference *x, const struct optimizer *o, const struct variable *v, double sum,
                           double clip, int64_t t)
{
    const struct optimizer_options *options = optimizer_options_of(o);
    double rate = optimizer_rate(o, t), decay = network_model(optimizer_network(o))->statistics_decay, g, d;

    if (v->kind == VARIABLE_STATISTIC) {
        x->biased -= (1 - decay) * (x->biased - sum / (double)SAMPLES);
        if (v->debias_scope[0])
            x->w = x->biased / (1 - pow(decay, (double)t + 1));
        else
            x->w -= (1 - decay) * (x->w - sum / (double)SAMPLES);
        return;
    }
    g = clip * (sum / (double)SAMPLES + v->decay * x->w);
    if (options->kind == OPTIMIZER_SGD) {
        x->w -= rate * g;
    } else if (options->kind == OPTIMIZER_MOMENTUM) {
        x->slot1 = 0.9 * x->slot1 + g;
        x->w -= rate * x->slot1;
    } else if (options->kind == OPTIMIZER_ADAGRAD) {
        x->slot1 += g * g;
        x->w -= rate * g / sqrt(x->slot1);
    } else {
        x->slot1 += 0.1 * (g - x->slot1);
        x->slot2 += 0.001 * (g * g - x->slot2);
        x->w -= rate * sqrt(1 - pow(0.999, (double)t + 1)) / (1 - pow(0.9, (double)t + 1)) * x->slot1 /
                (sqrt(x->slot2) + 1e-8);
    }
    d = fmin(options->moving_average, ((double)t + 2) / ((double)t + 11));
    x->average -= (1 - d) * (x->average - x->w);
}

static void assert_near(double got, double want, const char *name, size_t i)
{
    if (!(fabs(got - want) <= 2e-6 * (1 + fabs(want))))
        fail_msg("%s[%zu] is %.9g, and %.9g in double", name, i, got, want);
}

/* By what gradients are clipped, according to the weights in double; and that the optimizer's norm is this one. */
static double reference_clip(const struct reference *x, struct optimizer *o, const real *sum, int64_t t)
{
    struct network *n = optimizer_network(o);
    const double limit = optimizer_options_of(o)->clip_norm;
    double squares = 0;
    size_t count;
    const struct variable *v = network_variables(n, &count);

    optimizer_measure(o, t, sum);
    if (!(limit > 0))
        return 1;
    for (size_t k = 0; k < count; k++)
        for (size_t i = v[k].offset; v[k].kind == VARIABLE_WEIGHT && i < v[k].offset + v[k].count; i++)
            squares += pow((double)sum[i] / (double)SAMPLES + v[k].decay * x[i].w, 2);
    if (!(fabs(optimizer_gradient_norm(o) / sqrt(squares) - 1) < 1e-6))
        fail_msg("the norm is %.9g, and %.9g in double", optimizer_gradient_norm(o), sqrt(squares));
    return limit / fmax(limit, sqrt(squares));
}

static void check_against_double(const char *model, enum optimizer_kind kind, double average, double clip_norm)
{
    struct network *n = network_of(model);
    struct optimizer *o = optimizer_of(n, kind, average, clip_norm);
    size_t total = network_exchange_count(n), parameters = network_parameter_count(n), count;
    const struct variable *v = network_variables(n, &count);
    struct reference *x = calloc(total, sizeof *x);
    real *sum = calloc(total, sizeof *sum);

    for (size_t i = 0; i + 1 < total; i++) {
        x[i].w = i < parameters ? network_parameters(n)[i] : network_statistics(n)[i - parameters];
        x[i].average = x[i].w;
        x[i].slot1 = kind == OPTIMIZER_ADAGRAD ? 0.1 : 0;
    }
    for (int64_t t = 0; t < STEPS; t++) {
        double clip;

        fill_sum(sum, total, parameters, t);
        clip = reference_clip(x, o, sum, t);
        assert_true(clip_norm == 0 || (clip_norm < 5) == (clip < 0.9));
        optimizer_apply(o, t, sum, 0, total);
        for (size_t k = 0; k < count; k++) {
            const size_t from = network_exchange_place(n, &v[k]);

            for (size_t i = from; i < from + v[k].count; i++)
                reference_step(&x[i], o, &v[k], sum[i], clip, t);
        }
    }
    for (size_t k = 0; k < count; k++) {
        int statistic = v[k].kind == VARIABLE_STATISTIC;
        const real *w = statistic ? network_statistics(n) : network_parameters(n);

        for (size_t i = 0; i < v[k].count; i++) {
            const struct reference *r = &x[v[k].offset + (statistic ? parameters : 0) + i];

            assert_near(w[v[k].offset + i], r->w, v[k].name, i);
            if (!statistic && average > 0)
                assert_near(optimizer_array(o, ARRAY_AVERAGES).values[v[k].offset + i], r->average, v[k].name, i);
            if (!statistic && kind != OPTIMIZER_SGD)
                assert_near(optimizer_array(o, ARRAY_SLOT_1).values[v[k].offset + i], r->slot1, v[k].name, i);
        }
    }
    free(x);
    free(sum);
    optimizer_free(o);
    network_free(n);
}

static void test_formulas(void **state)
{
    (void)state;
    check_against_double("lenet", OPTIMIZER_SGD, 0, 0);
    check_against_double("lenet", OPTIMIZER_MOMENTUM, 0, 0);
    check_against_double("lenet", OPTIMIZER_ADAM, 0.9999, 0);
    check_against_double("lenet", OPTIMIZER_ADAGRAD, 0.9999, 0);
    check_against_double("cifar10_cnn", OPTIMIZER_ADAGRAD, 0, 0);
    check_against_double("cifar10_cnn", OPTIMIZER_SGD, 0.9999, 0);
    check_against_double("resnet32", OPTIMIZER_MOMENTUM, 0, 0);
}

/* Random gradients have norms of 6 (lenet) and 28 (resnet32, cifar10_cnn: 43). */
static void test_clipped(void **state)
{
    (void)state;
    check_against_double("lenet", OPTIMIZER_SGD, 0, 0.5);
    check_against_double("lenet", OPTIMIZER_MOMENTUM, 0.9999, 1000);
    check_against_double("cifar10_cnn", OPTIMIZER_SGD, 0, 3);
    check_against_double("resnet32", OPTIMIZER_MOMENTUM, 0, 2);
}

/* A gradient within the limit is left alone, to the bit. */
static void test_not_clipped(void **state)
{
    struct network *a = network_of("lenet"), *b = network_of("lenet");
    struct optimizer *x = optimizer_of(a, OPTIMIZER_MOMENTUM, 0, 1000), *y = optimizer_of(b, OPTIMIZER_MOMENTUM, 0, 0);
    const size_t total = network_exchange_count(a), parameters = network_parameter_count(a);
    real *sum = calloc(total, sizeof *sum);

    (void)state;
    for (int64_t t = 0; t < 3; t++) {
        fill_sum(sum, total, parameters, t);
        optimizer_measure(x, t, sum);
        optimizer_apply(x, t, sum, 0, total);
        optimizer_apply(y, t, sum, 0, total);
    }
    assert_true(optimizer_gradient_norm(x) > 1 && optimizer_gradient_norm(y) == 0);
    assert_memory_equal(network_parameters(a), network_parameters(b), parameters * sizeof(real));
    free(sum);
    optimizer_free(x);
    optimizer_free(y);
    network_free(a);
    network_free(b);
}

static void test_parts_are_the_whole(void **state)
{
    static const char *const models[] = { "lenet", "resnet32" };

    (void)state;
    for (size_t m = 0; m < 2; m++)
        for (size_t piece = 97; piece < 200000; piece = piece * 37 + 5) {
            struct network *a = network_of(models[m]), *b = network_of(models[m]);
            struct optimizer *x = optimizer_of(a, OPTIMIZER_ADAM, 0.99, 0.1),
                             *y = optimizer_of(b, OPTIMIZER_ADAM, 0.99, 0.1);
            size_t total = network_exchange_count(a);
            real *sum = calloc(total, sizeof *sum);

            for (int64_t t = 0; t < 3; t++) {
                fill_sum(sum, total, network_parameter_count(a), t);
                optimizer_measure(x, t, sum);
                optimizer_measure(y, t, sum);
                optimizer_apply(x, t, sum, 0, total);
                for (size_t from = 0; from < total; from += piece)
                    optimizer_apply(y, t, sum, from, from + piece < total ? from + piece : total);
            }
            for (int k = 0; k < ARRAY_KINDS; k++) {
                struct optimizer_array p = optimizer_array(x, (enum optimizer_array_kind)k);
                struct optimizer_array q = optimizer_array(y, (enum optimizer_array_kind)k);

                assert_int_equal(p.count, q.count);
                if (p.count)
                    assert_memory_equal(p.values, q.values, p.count * sizeof(real));
            }
            free(sum);
            optimizer_free(x);
            optimizer_free(y);
            network_free(a);
            network_free(b);
        }
}

/* After one update the zero-debiased statistics are the batch's: the initial 0 and 1 never count. */
static void test_first_statistics(void **state)
{
    struct network *n = network_of("resnet32");
    struct optimizer *o = optimizer_of(n, OPTIMIZER_MOMENTUM, 0, 0);
    size_t p = network_parameter_count(n), total = network_exchange_count(n);
    real *sum = calloc(total, sizeof *sum);

    (void)state;
    assert_true(network_statistic_count(n) > 0);
    fill_sum(sum, total, p, 0);
    optimizer_apply(o, 0, sum, 0, total);
    for (size_t i = p; i + 1 < total; i++)
        assert_near(network_statistics(n)[i - p], sum[i] / (real)SAMPLES, "statistics", i - p);
    free(sum);
    optimizer_free(o);
    network_free(n);
}

/* Where nothing had weight, what sums hold is 0 as a rule, and in no case divided by 0: only weight decay moves. */
static void test_no_weight(void **state)
{
    struct network *n = network_of("resnet32");
    struct optimizer *o = optimizer_of(n, OPTIMIZER_SGD, 0, 0);
    size_t total = network_exchange_count(n), count;
    const struct variable *v = network_variables(n, &count);
    real *sum = calloc(total, sizeof *sum), *before = calloc(total, sizeof *before);

    (void)state;
    memcpy(before, network_parameters(n), network_parameter_count(n) * sizeof *before);
    optimizer_apply(o, 0, sum, 0, total);
    for (size_t k = 0; k < count; k++)
        for (size_t i = v[k].offset; v[k].kind == VARIABLE_WEIGHT && i < v[k].offset + v[k].count; i++)
            assert_near(network_parameters(n)[i], before[i] * (1 - optimizer_rate(o, 0) * v[k].decay), v[k].name, i);
    free(sum);
    free(before);
    optimizer_free(o);
    network_free(n);
}

/* A replica has all arrays and counters of its source; and the copies are counted. */
static void test_copy(void **state)
{
    static const struct {
        const char *model;
        enum optimizer_kind kind;
        double average;
        size_t copies;
    } rows[] = {
        { "mnist_cnn", OPTIMIZER_ADAM, 0, 42 },     { "mnist_cnn", OPTIMIZER_ADAM, 0.9, 56 },
        { "mnist_cnn", OPTIMIZER_MOMENTUM, 0, 28 }, { "mnist_cnn", OPTIMIZER_SGD, 0, 14 },
        { "resnet32", OPTIMIZER_MOMENTUM, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct network *n[2];
        struct optimizer *o[2];
        size_t total, variables, statistics = 0, copies = rows[i].copies;
        const struct variable *v;
        real *sum;

        for (int k = 0; k < 2; k++) {
            assert_int_equal(network_new(&n[k], model_find(rows[i].model), 0, NULL), OK);
            network_initialize(n[k], 7 + (uint64_t)k);
            o[k] = optimizer_of(n[k], rows[i].kind, rows[i].average, 0);
        }
        total = network_exchange_count(n[0]);
        sum = calloc(total, sizeof *sum);
        fill_sum(sum, total, network_parameter_count(n[0]), 0);
        optimizer_apply(o[0], 0, sum, 0, total);
        optimizer_counters(o[0])->adam_ahead = 3;
        optimizer_counters(o[0])->statistics_ahead = 4;
        v = network_variables(n[0], &variables);
        for (size_t k = 0; k < variables; k++)
            statistics += v[k].kind == VARIABLE_STATISTIC;
        if (copies == 0) /* weights and a slot, statistics and their biased means */
            copies = 2 * variables;
        assert_int_equal(statistics > 0, !strcmp(rows[i].model, "resnet32"));
        assert_int_equal(optimizer_copy(o[1], o[0]), copies);
        for (int k = 0; k < ARRAY_KINDS; k++) {
            const struct optimizer_array a = optimizer_array(o[0], (enum optimizer_array_kind)k);
            const struct optimizer_array b = optimizer_array(o[1], (enum optimizer_array_kind)k);

            if (a.count)
                assert_memory_equal(a.values, b.values, a.count * sizeof *a.values);
        }
        assert_memory_equal(optimizer_counters(o[0]), optimizer_counters(o[1]), sizeof(struct optimizer_counters));
        free(sum);
        for (int k = 0; k < 2; k++) {
            optimizer_free(o[k]);
            network_free(n[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_clipped),
        cmocka_unit_test(test_not_clipped),
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_first_statistics),
        cmocka_unit_test(test_no_weight),
        cmocka_unit_test(test_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
