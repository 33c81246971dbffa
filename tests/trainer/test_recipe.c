/* Every model's recipe, its schedule, and the one for a model that has none. */
#include "model/file/recipe.h"

#include "dataset/transform.h"
#include "model/model.h"
#include "tests/check.h"
#include "trainer/optimizers/optimizer.h"

#include <math.h>
#include <string.h>

static void test_every_model(void **state)
{
    (void)state;
    for (size_t i = 0; model_names()[i]; i++) {
        const struct recipe *r = recipe_find(model_names()[i]);
        int known = 0;

        if (r->model)
            assert_string_equal(r->model, model_names()[i]);
        if (r->transform)
            assert_non_null(transform_find(r->transform));
        if (model_find(model_names()[i])->integers)
            assert_true(!r->transform && !model_find(model_names()[i])->transform);
        else
            assert_non_null(transform_find(model_find(model_names()[i])->transform));
        for (int k = 0; k < OPTIMIZER_KINDS; k++)
            known |= !strcmp(r->optimizer, optimizer_kind_names[k]);
        assert_true(known);
        assert_true(r->learning_rate > 0 && r->batch_size > 0);
    }
}

/* The models of the specification have their own recipes, with images as they are trained. */
static void test_seed_models(void **state)
{
    static const struct {
        const char *model, *transform;
    } rows[] = {
        { "lenet", "unit" },
        { "cifar10_cnn", "cifar-tutorial-train" },
        { "resnet32", "cifar-resnet-train" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(recipe_find(rows[i].model)->model, rows[i].model);
        assert_string_equal(recipe_find(rows[i].model)->transform, rows[i].transform);
    }
}

/* As published: batch, optimizer, rate, seed, and 55,000 of MNIST's images. */
static void test_published(void **state)
{
    static const struct {
        const char *model, *optimizer;
        double rate;
        int batch, hold_out;
        uint64_t seed;
    } rows[] = {
        { "cifar10_cnn", "sgd", 0.1, 128, 0, 0 },         { "resnet32", "momentum", 0.1, 128, 0, 0 },
        { "mnist_cnn", "adam", 0.001, 1024, 5000, 777 },  { "mnist_lstm", "adam", 0.001, 32, 5000, 0 },
        { "mnist_lstm_128", "sgd", 0.001, 128, 5000, 0 }, { "language_model", "adagrad", 0.5, 32, 0, 0 },
        { "resnet50", "momentum", 0.064, 128, 0, 0 },     { "resnet50b", "momentum", 0.064, 128, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct recipe *r = recipe_find(rows[i].model);

        assert_string_equal(r->optimizer, rows[i].optimizer);
        assert_true(r->learning_rate == rows[i].rate);
        assert_int_equal(r->batch_size, rows[i].batch);
        assert_int_equal(r->hold_out, rows[i].hold_out);
        assert_int_equal(r->seed, rows[i].seed);
    }
}

static void test_usual(void **state)
{
    const struct recipe *r = recipe_find("a model of one's own");

    (void)state;
    assert_null(r->model);
    assert_null(r->transform);
    assert_string_equal(r->optimizer, "momentum");
    assert_int_equal(r->batch_size, 128);
}

static void test_schedules(void **state)
{
    static const struct {
        const char *name;
        int64_t step;
        double rate;
    } cases[] = {
        { "resnet32", 0, 0.1 },         { "resnet32", 39999, 0.1 },      { "resnet32", 40000, 0.01 },
        { "resnet32", 59999, 0.01 },    { "resnet32", 60000, 0.001 },    { "resnet32", 80000, 0.0001 },
        { "cifar10_cnn", 136717, 0.1 }, { "cifar10_cnn", 136718, 0.01 }, { "cifar10_cnn", 273436, 0.001 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct recipe *r = recipe_find(cases[i].name);

        assert_true(fabs(rate_curve_rate(&r->schedule, r->learning_rate, cases[i].step) / cases[i].rate - 1) < 1e-12);
    }
    assert_true(rate_curve_rate(&recipe_find("lenet")->schedule, 0.05, 1000000) == 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model), cmocka_unit_test(test_seed_models), cmocka_unit_test(test_published),
        cmocka_unit_test(test_usual),       cmocka_unit_test(test_schedules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
