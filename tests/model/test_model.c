/* The models' tables: counts, names and shapes of the variables against the specification of the seed models. */
#include "model/model.h"
#include "model/network.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct network *new_network(const char *model, int max_batch)
{
    struct error e = { 0 };
    struct network *n = NULL;
    int rc = network_new(&n, model_find(model), max_batch, &e);

    if (rc < 0)
        fail_msg("%s", e.message);
    return n;
}

static const struct variable *find(const struct network *n, const char *name)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);

    for (size_t i = 0; i < count; i++)
        if (!strcmp(v[i].name, name))
            return &v[i];
    return NULL;
}

static void counts(void **state)
{
    static const struct {
        const char *name;
        size_t parameters, statistics, variables;
    } cases[] = {
        { "resnet32", 464154, 2272, 31 * 4 + 32 + 1 },
        { "cifar10_cnn", 1068298, 0, 10 },
        { "lenet", 21840, 0, 8 },
        { "mnist_cnn", 1014922, 0, 14 },
        { "mnist_lstm", 24458, 0, 4 },
        { "mnist_lstm_128", 81674, 0, 4 },
        { "language_model", 10000 * 200 + 400 * 800 + 800 + 200 * 10000 + 10000, 0, 5 },
        { "resnet50", 25557032, 53120, 53 + 53 * 4 + 2 },
        { "resnet50b", 25557032, 53120, 53 + 53 * 4 + 2 },
        { "resnet50_torchvision", 25557032, 53120, 53 + 53 * 4 + 2 },
        { "show_and_tell", 15447776, 0, 6 },
        { "inception_v3", 21768352, 34432, 94 * 4 },
        { "next_word", 10000 * 64 + 5 * 64 * 128 + 128 + 128 * 10000 + 10000, 0, 5 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network *n = new_network(cases[i].name, 0);
        size_t variables, parameters = 0, statistics = 0;
        const struct variable *v = network_variables(n, &variables);

        assert_int_equal(network_parameter_count(n), cases[i].parameters);
        assert_int_equal(network_statistic_count(n), cases[i].statistics);
        assert_int_equal(variables, cases[i].variables);
        for (size_t k = 0; k < variables; k++) { /* contiguous, in order, each in its array */
            size_t *total = v[k].kind == VARIABLE_WEIGHT ? &parameters : &statistics, count = 1;
            for (int d = 0; d < v[k].rank; d++)
                count *= (size_t)v[k].shape[d];
            assert_int_equal(v[k].offset, *total);
            assert_int_equal(v[k].count, count);
            *total += count;
        }
        assert_int_equal(parameters, cases[i].parameters);
        network_free(n);
    }
    assert_null(model_find("resnet33"));
}

static void names(void **state)
{
    static const struct {
        const char *model, *name;
        int rank;
        int64_t shape[4];
        double decay;
        enum initial_kind initial;
        double value;
        const char *debias;
    } cases[] = {
        { "resnet32", "init/init_conv/DW", 4, { 3, 3, 3, 16 }, 0.0002, INITIAL_NORMAL, 0.11785113019775793, "" },
        { "resnet32", "unit_1_0/shared_activation/init_bn/gamma", 1, { 16 }, 0, INITIAL_CONSTANT, 1, "" },
        { "resnet32",
          "unit_1_0/shared_activation/init_bn/moving_variance",
          1,
          { 16 },
          0,
          INITIAL_CONSTANT,
          1,
          "unit_1_0/shared_activation/init_bn" },
        { "resnet32", "unit_2_0/residual_only_activation/init_bn/beta", 1, { 16 }, 0, INITIAL_CONSTANT, 0, "" },
        { "resnet32", "unit_2_0/sub1/conv1/DW", 4, { 3, 3, 16, 32 }, 0.0002, INITIAL_NORMAL, 0.08333333333333333, "" },
        { "resnet32", "unit_3_4/sub2/bn2/moving_mean", 1, { 64 }, 0, INITIAL_CONSTANT, 0, "unit_3_4/sub2/bn2" },
        { "resnet32", "unit_3_4/sub2/conv2/DW", 4, { 3, 3, 64, 64 }, 0.0002, INITIAL_NORMAL, 0.05892556509887896, "" },
        { "resnet32", "unit_last/final_bn/beta", 1, { 64 }, 0, INITIAL_CONSTANT, 0, "" },
        { "resnet32", "logit/DW", 2, { 64, 10 }, 0.0002, INITIAL_UNIFORM, 0.21650635094610965, "" },
        { "next_word", "embedding/map", 2, { 10000, 64 }, 0, INITIAL_UNIFORM, 0.1, "" },
        { "next_word", "hidden/weights", 2, { 320, 128 }, 1e-5, INITIAL_UNIFORM, 0.11572751247156893, "" },
        { "next_word", "hidden/biases", 1, { 128 }, 0, INITIAL_CONSTANT, 0, "" },
        { "next_word", "logits/weights", 2, { 128, 10000 }, 1e-5, INITIAL_UNIFORM, 0.024339619175561773, "" },
        { "resnet32", "logit/biases", 1, { 10 }, 0, INITIAL_CONSTANT, 0, "" },
        { "cifar10_cnn", "conv1/weights", 4, { 5, 5, 3, 64 }, 0, INITIAL_TRUNCATED_NORMAL, 0.05, "" },
        { "cifar10_cnn", "conv2/biases", 1, { 64 }, 0, INITIAL_CONSTANT, 0.1, "" },
        { "cifar10_cnn", "local3/weights", 2, { 2304, 384 }, 0.004, INITIAL_TRUNCATED_NORMAL, 0.04, "" },
        { "cifar10_cnn", "local4/biases", 1, { 192 }, 0, INITIAL_CONSTANT, 0.1, "" },
        { "cifar10_cnn", "softmax_linear/weights", 2, { 192, 10 }, 0, INITIAL_TRUNCATED_NORMAL, 1 / 192.0, "" },
        { "lenet", "conv2/weights", 4, { 5, 5, 10, 20 }, 1e-4, INITIAL_UNIFORM, 0.08944271909999159, "" },
        { "lenet", "fc3/weights", 2, { 320, 50 }, 1e-4, INITIAL_UNIFORM, 0.12734290799340264, "" },
        { "lenet", "fc4/biases", 1, { 10 }, 0, INITIAL_CONSTANT, 0, "" },
        { "mnist_lstm", "rnn/lstm_cell/kernel", 2, { 92, 256 }, 0, INITIAL_UNIFORM, 0.13130643285972254, "" },
        { "mnist_lstm", "rnn/lstm_cell/bias", 1, { 256 }, 0, INITIAL_CONSTANT, 0, "" },
        { "mnist_lstm", "dense/kernel", 2, { 64, 10 }, 0, INITIAL_UNIFORM, 0.2847473987257497, "" },
        { "mnist_lstm", "dense/bias", 1, { 10 }, 0, INITIAL_CONSTANT, 0, "" },
        { "mnist_lstm_128",
          "rnn/basic_lstm_cell/kernel",
          2,
          { 156, 512 },
          0,
          INITIAL_UNIFORM,
          0.09477360354098452,
          "" },
        { "mnist_lstm_128", "rnn/basic_lstm_cell/bias", 1, { 512 }, 0, INITIAL_CONSTANT, 0, "" },
        { "mnist_lstm_128", "Variable", 2, { 128, 10 }, 0, INITIAL_NORMAL, 1, "" },
        { "mnist_lstm_128", "Variable_1", 1, { 10 }, 0, INITIAL_NORMAL, 1, "" },
        { "language_model", "embedding/map", 2, { 10000, 200 }, 0, INITIAL_UNIFORM, 0.1, "" },
        { "language_model", "rnn/lstm_cell/kernel", 2, { 400, 800 }, 0, INITIAL_UNIFORM, 0.1, "" },
        { "language_model", "rnn/lstm_cell/bias", 1, { 800 }, 0, INITIAL_CONSTANT, 0, "" },
        { "language_model", "softmax/kernel", 2, { 200, 10000 }, 0, INITIAL_UNIFORM, 0.1, "" },
        { "language_model", "softmax/bias", 1, { 10000 }, 0, INITIAL_CONSTANT, 0, "" },
        { "resnet50",
          "conv1.weight",
          4,
          { 7, 7, 3, 64 },
          1e-4,
          INITIAL_TRUNCATED_NORMAL,
          0.09376557953897816,
          "" }, /* sqrt(1 / 147) / 0.8796 */
        { "resnet50", "bn1.weight", 1, { 64 }, 0, INITIAL_CONSTANT, 1, "" },
        { "resnet50", "bn1.running_var", 1, { 64 }, 0, INITIAL_CONSTANT, 1, "" },
        { "resnet50b",
          "layer4.0.downsample.0.weight",
          4,
          { 1, 1, 1024, 2048 },
          1e-4,
          INITIAL_TRUNCATED_NORMAL,
          0.03552647607307989,
          "" },
        { "resnet50b",
          "layer3.5.conv2.weight",
          4,
          { 3, 3, 256, 256 },
          1e-4,
          INITIAL_TRUNCATED_NORMAL,
          0.023684317382053257,
          "" },
        { "resnet50b", "layer1.0.bn3.bias", 1, { 256 }, 0, INITIAL_CONSTANT, 0, "" },
        { "resnet50b", "fc.weight", 2, { 2048, 1000 }, 1e-4, INITIAL_TRUNCATED_NORMAL, 0.022097086912079608, "" },
        { "resnet50_torchvision",
          "layer1.0.conv1.weight",
          4,
          { 1, 1, 64, 64 },
          1e-4,
          INITIAL_NORMAL,
          0.17677669529663687,
          "" },
        { "resnet50_torchvision", "fc.bias", 1, { 1000 }, 0, INITIAL_UNIFORM, 0.022097086912079608, "" },
        { "show_and_tell", "image_embedding/weights", 2, { 2048, 512 }, 0, INITIAL_UNIFORM, 0.08, "" },
        { "show_and_tell", "seq_embedding/map", 2, { 12000, 512 }, 0, INITIAL_UNIFORM, 0.08, "" },
        { "show_and_tell", "lstm/basic_lstm_cell/kernel", 2, { 1024, 2048 }, 0, INITIAL_UNIFORM, 0.08, "" },
        { "show_and_tell", "lstm/basic_lstm_cell/bias", 1, { 2048 }, 0, INITIAL_CONSTANT, 0, "" },
        { "show_and_tell", "logits/weights", 2, { 512, 12000 }, 0, INITIAL_UNIFORM, 0.08, "" },
        { "show_and_tell", "logits/biases", 1, { 12000 }, 0, INITIAL_CONSTANT, 0, "" },
        { "inception_v3",
          "InceptionV3/Mixed_6b/Branch_1/Conv2d_0b_1x7/weights",
          4,
          { 1, 7, 128, 128 },
          0.00004,
          INITIAL_TRUNCATED_NORMAL,
          0.037979400464253445,
          "" },
        { "inception_v3",
          "InceptionV3/Mixed_7c/Branch_1/Conv2d_0c_3x1/BatchNorm/beta",
          1,
          { 384 },
          0,
          INITIAL_CONSTANT,
          0,
          "" },
        { "mnist_cnn", "Conv/weights", 4, { 5, 5, 1, 128 }, 0, INITIAL_UNIFORM, 0.043133109281375365, "" },
        { "mnist_cnn", "Conv_1/weights", 4, { 5, 5, 128, 128 }, 0, INITIAL_UNIFORM, 0.030618621784789725, "" },
        { "mnist_cnn", "Conv_5/weights", 4, { 3, 3, 128, 128 }, 0, INITIAL_UNIFORM, 0.05103103630798288, "" },
        { "mnist_cnn", "Conv_5/biases", 1, { 128 }, 0, INITIAL_CONSTANT, 0, "" },
        { "mnist_cnn", "fully_connected/weights", 2, { 1152, 10 }, 0, INITIAL_UNIFORM, 0.07185757571479554, "" },
        { "mnist_cnn", "fully_connected/biases", 1, { 10 }, 0, INITIAL_CONSTANT, 0, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct network *n = new_network(cases[i].model, 0);
        const struct variable *v = find(n, cases[i].name);

        assert_non_null(v);
        assert_int_equal(v->rank, cases[i].rank);
        for (int d = 0; d < v->rank; d++)
            assert_int_equal(v->shape[d], cases[i].shape[d]);
        assert_true(v->decay == cases[i].decay);
        assert_int_equal(v->initial, cases[i].initial);
        assert_true(fabs(v->initial_value - cases[i].value) < 1e-12);
        assert_string_equal(v->debias_scope, cases[i].debias);
        network_free(n);
    }
}

enum { LARGE = 5000000 }; /* drawing as many values takes seconds, and their kinds are those of smaller models */

/* Initial values have the deviation or the bound that the table says, and are a function of the seed. */
static void initial_values(void **state)
{
    (void)state;
    for (const char *const *name = model_names(); *name; name++) {
        struct network *n = new_network(*name, 0), *again;
        size_t count;
        const struct variable *v = network_variables(n, &count);

        if (network_parameter_count(n) > LARGE) {
            network_free(n);
            continue;
        }
        again = new_network(*name, 0);
        network_initialize(n, 7);
        network_initialize(again, 7);
        assert_memory_equal(network_parameters(n), network_parameters(again),
                            network_parameter_count(n) * sizeof(real));
        network_initialize(again, 8);
        assert_memory_not_equal(network_parameters(n), network_parameters(again),
                                network_parameter_count(n) * sizeof(real));
        for (size_t i = 0; i < count; i++) {
            const real *w = v[i].kind == VARIABLE_WEIGHT ? network_parameters(n) : network_statistics(n);
            const double bound[] = { 0, INFINITY, 2 * v[i].initial_value, v[i].initial_value };
            const double deviation[] = { 0, v[i].initial_value, 0.87963 * v[i].initial_value,
                                         v[i].initial_value / sqrt(3) };
            double sum = 0, square = 0;

            w += v[i].offset;
            for (size_t k = 0; k < v[i].count; k++) {
                if (v[i].initial == INITIAL_CONSTANT)
                    assert_true(w[k] == (real)v[i].initial_value);
                else
                    assert_true(fabs((double)w[k]) <= bound[v[i].initial] * 1.000001);
                sum += (double)w[k];
                square += (double)w[k] * (double)w[k];
            }
            if (v[i].initial != INITIAL_CONSTANT) {
                const double m = (double)v[i].count, d = deviation[v[i].initial];
                assert_true(fabs(sum / m) < 5 * d / sqrt(m));
                assert_true(fabs(sqrt(square / m) / d - 1) < 5 / sqrt(m));
            }
        }
        network_free(n);
        network_free(again);
    }
}

/* Decay's part of the loss at the start: the published 2.37 of the tutorial, 0.215 of ResNet-32. */
static void decay_loss(void **state)
{
    struct network *n = new_network("cifar10_cnn", 0);

    (void)state;
    network_initialize(n, 1);
    assert_true(fabs(network_decay_loss(n) - 2.37) < 0.02);
    network_free(n);
    n = new_network("resnet32", 0);
    network_initialize(n, 1);
    assert_true(fabs(network_decay_loss(n) - 0.215) < 0.005);
    network_free(n);
}

/* Which dense kernels read an image: not those of words, of an LSTM's steps or of another dense layer. */
static void flattened_images(void **state)
{
    static const struct {
        const char *model, *variable;
        int pixels;
    } of[] = {
        { "lenet", "fc3/weights", 16 },
        { "cifar10_cnn", "local3/weights", 36 },
        { "resnet32", "logit/DW", 1 },
        { "lenet", "fc4/weights", 0 },
    };

    (void)state;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        struct network *n = new_network(of[k].model, 0);
        size_t count, found = 0;
        const struct variable *v = network_variables(n, &count);

        for (size_t i = 0; i < count; i++) {
            if (strcmp(v[i].name, of[k].variable) != 0)
                continue;
            found++;
            assert_int_equal(v[i].pixels, of[k].pixels);
        }
        assert_int_equal(found, 1);
        network_free(n);
    }
    for (const char *const *name = (const char *const[]){ "next_word", "mnist_lstm", "language_model", NULL }; *name;
         name++) {
        struct network *n = new_network(*name, 0);
        size_t count;
        const struct variable *v = network_variables(n, &count);

        for (size_t i = 0; i < count; i++)
            assert_int_equal(v[i].pixels, 0);
        network_free(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),         cmocka_unit_test(names),      cmocka_unit_test(flattened_images),
        cmocka_unit_test(initial_values), cmocka_unit_test(decay_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
