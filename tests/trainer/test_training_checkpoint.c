/* A training's state through a checkpoint and back: the same bits; and checkpoints that are not ours. */
#include "trainer/training_checkpoint.h"

#include "base/random.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/tensor_bundle.h"
#include "model/file/recipe.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64], prefix[128];

struct training {
    struct network *network;
    struct optimizer *optimizer;
    struct loss_averages losses;
};

static struct training training_of(const char *model, enum optimizer_kind kind, double average, uint64_t seed)
{
    const struct optimizer_options options = {
        .kind = kind, .learning_rate = 0.01, .momentum = 0.9, .moving_average = average
    };
    struct training t;

    assert_int_equal(network_new(&t.network, model_find(model), 0, NULL), OK);
    network_initialize(t.network, seed);
    assert_int_equal(optimizer_new(&t.optimizer, t.network, &options, NULL), OK);
    assert_int_equal(loss_averages_init(&t.losses, t.network, recipe_find(model)->loss_average, NULL), OK);
    return t;
}

static void release(struct training *t)
{
    loss_averages_release(&t->losses);
    optimizer_free(t->optimizer);
    network_free(t->network);
}

static void update(struct training *t, int64_t step)
{
    size_t parameters = network_parameter_count(t->network);
    size_t total = network_exchange_count(t->network);
    real *sum = calloc(total, sizeof *sum);
    struct random r;

    random_init(&r, 5, RANDOM_TEST, (uint64_t)step, 0);
    for (size_t i = 0; i < total; i++)
        sum[i] = (real)(i < parameters ? random_normal(&r) : 8 * random_uniform(&r));
    sum[total - 1] = 8;
    loss_averages_before(&t->losses, t->network);
    optimizer_apply(t->optimizer, step, sum, 0, total);
    loss_averages_after(&t->losses, random_uniform(&r));
    free(sum);
}

static void assert_same_state(struct training *a, struct training *b)
{
    for (int k = 0; k < ARRAY_KINDS; k++) {
        struct optimizer_array x = optimizer_array(a->optimizer, (enum optimizer_array_kind)k);
        struct optimizer_array y = optimizer_array(b->optimizer, (enum optimizer_array_kind)k);

        assert_int_equal(x.count, y.count);
        if (x.count && memcmp(x.values, y.values, x.count * sizeof(real)) != 0)
            fail_msg("array %d differs", k);
    }
    assert_memory_equal(optimizer_counters(a->optimizer), optimizer_counters(b->optimizer),
                        sizeof(struct optimizer_counters));
    assert_int_equal(a->losses.count, b->losses.count);
    for (size_t i = 0; i < a->losses.count; i++)
        assert_true(a->losses.items[i].value == b->losses.items[i].value);
}

static const struct training_position position = {
    7, 0x8000000000000001u, 3, 2, 64, 120, 8, 5, 0x9000000000000002u, "ps", "files", "mnist", "OpenBLAS Haswell"
};

static void save(struct training *t)
{
    struct error e = { 0 };

    if (training_checkpoint_save(NULL, directory, 5, t->optimizer, &t->losses, &position, &e) != OK)
        fail_msg("%s", e.message);
    snprintf(prefix, sizeof prefix, "%s/model.ckpt-7", directory);
}

/* Without micro-shards nothing is said of them, and the global batch is the workers'. */
static void test_without_micro_shards(void **state)
{
    struct training t = training_of("lenet", OPTIMIZER_SGD, 0, 1);
    struct training_position p = position;

    (void)state;
    p.micro_shards = p.threads = 0;
    assert_int_equal(training_checkpoint_save(NULL, directory, 5, t.optimizer, &t.losses, &p, NULL), OK);
    p = (struct training_position){ .global_batch = 1, .micro_shards = 1, .threads = 1 };
    snprintf(prefix, sizeof prefix, "%s/model.ckpt-7", directory);
    assert_int_equal(training_checkpoint_load(prefix, t.optimizer, &t.losses, &p, NULL), CHECKPOINT_EXACT);
    assert_int_equal(p.global_batch, 128);
    assert_int_equal(p.micro_shards, 0);
    assert_int_equal(p.threads, 0);
    release(&t);
}

static void test_round_trip(void **state)
{
    static const struct {
        const char *model;
        enum optimizer_kind kind;
        double average;
    } cases[] = {
        { "lenet", OPTIMIZER_SGD, 0 },
        { "lenet", OPTIMIZER_ADAM, 0.999 },
        { "cifar10_cnn", OPTIMIZER_SGD, 0.9999 },
        { "resnet32", OPTIMIZER_MOMENTUM, 0 },
        { "resnet32", OPTIMIZER_ADAM, 0 },
        { "resnet32", OPTIMIZER_ADAGRAD, 0 },
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct training a = training_of(cases[c].model, cases[c].kind, cases[c].average, 1);
        struct training b = training_of(cases[c].model, cases[c].kind, cases[c].average, 2);
        struct training_position p = { 0 };

        for (int64_t t = 0; t < 7; t++)
            update(&a, t);
        save(&a);
        assert_int_equal(training_checkpoint_load(prefix, b.optimizer, &b.losses, &p, NULL), CHECKPOINT_EXACT);
        assert_memory_equal(&p, &position, sizeof p);
        assert_same_state(&a, &b);
        for (int64_t t = 7; t < 10; t++) {
            update(&a, t);
            update(&b, t);
        }
        assert_same_state(&a, &b);
        release(&a);
        release(&b);
    }
}

static void test_names(void **state)
{
    struct training a = training_of("resnet32", OPTIMIZER_MOMENTUM, 0, 1);
    struct tensor_bundle *b;
    const struct tensor_entry *t;
    const char scope[] = "unit_last/final_bn/unit_last/final_bn/moving_mean";
    char name[128];
    float value;
    int64_t step;

    (void)state;
    for (int64_t i = 0; i < 7; i++)
        update(&a, i);
    save(&a);
    assert_int_equal(tensor_bundle_open(&b, prefix, NULL), OK);
    t = tensor_bundle_find(b, "global_step");
    assert_true(t && t->type == TENSOR_INT64 && t->rank == 0);
    assert_int_equal(tensor_bundle_read_integer(b, t, &step, NULL), OK);
    assert_int_equal(step, 7);
    assert_non_null(tensor_bundle_find(b, "init/init_conv/DW/Momentum"));
    assert_null(tensor_bundle_find(b, "unit_last/final_bn/moving_mean/Momentum"));
    snprintf(name, sizeof name, "%s/biased", scope);
    t = tensor_bundle_find(b, name);
    assert_true(t && t->rank == 1 && t->shape[0] == 64);
    snprintf(name, sizeof name, "%s/local_step", scope);
    t = tensor_bundle_find(b, name);
    assert_true(t && t->rank == 0 && t->type == TENSOR_FLOAT);
    assert_int_equal(tensor_bundle_read_float(b, t, &value, 1, NULL), OK);
    assert_true(value == 7);
    tensor_bundle_close(b);
    release(&a);
}

static void test_beta_powers(void **state)
{
    struct training a = training_of("lenet", OPTIMIZER_ADAM, 0, 1);
    struct tensor_bundle *b;
    float value;

    (void)state;
    save(&a); /* at step 7, so after 7 updates as far as adam can know */
    assert_int_equal(tensor_bundle_open(&b, prefix, NULL), OK);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "beta1_power"), &value, 1, NULL), OK);
    assert_true(fabs(value - pow(0.9, 8)) < 1e-7);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "beta2_power"), &value, 1, NULL), OK);
    assert_true(fabs(value - pow(0.999, 8)) < 1e-7);
    tensor_bundle_close(b);
    release(&a);
}

/* A checkpoint of another program, of step 7: weights and statistics, with momentum's slots if asked for. The tensor
 * named `integers` is of int32. */
static void write_foreign(struct network *n, int slots, const char *integers)
{
    struct tensor_bundle_writer *w;
    int64_t step = 7;
    size_t count;
    const struct variable *v = network_variables(n, &count);

    snprintf(prefix, sizeof prefix, "%s/foreign-7", directory);
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, prefix, NULL), OK);
    for (size_t i = 0; i < count; i++)
        for (int slot = 0; slot <= slots; slot++) {
            const real *values = v[i].kind == VARIABLE_WEIGHT ? network_parameters(n) : network_statistics(n);
            char name[160];

            snprintf(name, sizeof name, "%s%s", v[i].name, slot ? "/Momentum" : "");
            assert_int_equal(tensor_bundle_writer_add(w, name, strcmp(name, integers) ? TENSOR_FLOAT : TENSOR_INT32,
                                                      v[i].rank, v[i].shape, values + v[i].offset,
                                                      v[i].count * sizeof(float), NULL),
                             OK);
        }
    assert_int_equal(tensor_bundle_writer_add(w, "global_step", TENSOR_INT64, 0, NULL, &step, sizeof step, NULL), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
}

/* Only weights, as many programs write them: the slots begin anew, the biased statistics as if they had been kept. */
static void test_foreign(void **state)
{
    struct training a = training_of("resnet32", OPTIMIZER_MOMENTUM, 0, 1);
    struct training b = training_of("resnet32", OPTIMIZER_MOMENTUM, 0, 2);
    struct training_position p = { .seed = 99 };
    struct optimizer_array slot;

    (void)state;
    for (int64_t t = 0; t < 7; t++)
        update(&a, t);
    write_foreign(a.network, 0, "");
    update(&b, 0); /* something to be forgotten */
    assert_int_equal(training_checkpoint_load(prefix, b.optimizer, &b.losses, &p, NULL), CHECKPOINT_FOREIGN);
    assert_int_equal(p.global_step, 7);
    assert_int_equal(p.seed, 99);
    assert_memory_equal(network_parameters(a.network), network_parameters(b.network),
                        network_parameter_count(a.network) * sizeof(real));
    slot = optimizer_array(b.optimizer, ARRAY_SLOT_1);
    for (size_t i = 0; i < slot.count; i++)
        assert_true(slot.values[i] == 0);
    for (size_t i = 0; i < network_statistic_count(a.network); i++) {
        real x = optimizer_array(a.optimizer, ARRAY_BIASED).values[i];
        real y = optimizer_array(b.optimizer, ARRAY_BIASED).values[i];

        assert_true(fabsf(x - y) <= 1e-6f * fabsf(x));
    }
    release(&a);
    release(&b);
}

/* Names and values as TensorFlow's tutorial has them: the recurrence by hand, from 0. */
static void test_loss_averages(void **state)
{
    static const char *const names[] = { "cross_entropy/avg", "local3/weight_loss/avg", "local4/weight_loss/avg",
                                         "total_loss/avg" };
    struct training a = training_of("cifar10_cnn", OPTIMIZER_SGD, 0.9999, 1),
                    b = training_of("lenet", OPTIMIZER_SGD, 0, 1);
    double wanted[4] = { 0 }, losses[4];
    struct tensor_bundle *bundle;

    (void)state;
    assert_int_equal(a.losses.count, 4);
    assert_int_equal(b.losses.count, 0);
    for (int64_t t = 0; t < 7; t++) {
        size_t count;
        const struct variable *v = network_variables(a.network, &count);

        losses[3] = network_decay_loss(a.network);
        for (size_t i = 0; i < count; i++)
            for (int k = 1; k < 3; k++)
                if (!strcmp(v[i].name, k == 1 ? "local3/weights" : "local4/weights"))
                    losses[k] = network_decay_loss_of(a.network, &v[i]);
        assert_true(fabs(losses[1] + losses[2] - losses[3]) < 1e-12 * losses[3]);
        update(&a, t);
        losses[0] = a.losses.items[0].loss;
        losses[3] += losses[0];
        for (int k = 0; k < 4; k++)
            wanted[k] -= 0.1 * (wanted[k] - losses[k]);
    }
    save(&a);
    assert_int_equal(tensor_bundle_open(&bundle, prefix, NULL), OK);
    for (int k = 0; k < 4; k++) {
        const struct tensor_entry *t = tensor_bundle_find(bundle, names[k]);
        float value;

        assert_string_equal(a.losses.items[k].name, names[k]);
        assert_non_null(t);
        assert_int_equal(t->rank, 0);
        assert_int_equal(t->type, TENSOR_FLOAT);
        assert_int_equal(tensor_bundle_read_float(bundle, t, &value, 1, NULL), OK);
        if (!(fabs(value - wanted[k]) < 1e-6 * wanted[k]))
            fail_msg("%s: %g, wanted %g", names[k], (double)value, wanted[k]);
    }
    tensor_bundle_close(bundle);
    release(&a);
    release(&b);
}

static void test_other_model(void **state)
{
    struct training a = training_of("lenet", OPTIMIZER_ADAM, 0, 1), b = training_of("cifar10_cnn", OPTIMIZER_SGD, 0, 1);
    struct training c = training_of("cifar10_cnn", OPTIMIZER_SGD, 0, 1);
    struct training_position p = { 0 };
    struct error e = { 0 };

    (void)state;
    save(&a);
    assert_int_equal(training_checkpoint_load(prefix, b.optimizer, &b.losses, &p, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "not a checkpoint of model cifar10_cnn: 10 of 10 variables do not fit: "
                                      "conv1/weights has shape [5,5,1,10], wanted [5,5,3,64]; conv1/biases has"));
    assert_non_null(strstr(e.message, "; local3/weights is missing; "));
    assert_string_equal(e.message + strlen(e.message) - 3, "...");
    assert_same_state(&b, &c); /* nothing was changed */
    release(&a);
    release(&b);
    release(&c);
}

/* Integers are no weights, and the others are not loaded then; as slots they count as missing. */
static void test_integers(void **state)
{
    struct training a = training_of("lenet", OPTIMIZER_MOMENTUM, 0, 1),
                    b = training_of("lenet", OPTIMIZER_MOMENTUM, 0, 2);
    struct training c = training_of("lenet", OPTIMIZER_MOMENTUM, 0, 2);
    struct optimizer_array slot = optimizer_array(b.optimizer, ARRAY_SLOT_1);
    struct training_position p = { 0 };
    struct error e = { 0 };

    (void)state;
    write_foreign(a.network, 1, "conv2/biases");
    assert_int_equal(training_checkpoint_load(prefix, b.optimizer, &b.losses, &p, &e), ERR_ARG);
    assert_non_null(strstr(e.message, ": 1 of 8 variables do not fit: conv2/biases has type int32"));
    assert_null(strstr(e.message, "..."));
    assert_same_state(&b, &c);
    write_foreign(a.network, 1, "");
    assert_int_equal(training_checkpoint_load(prefix, b.optimizer, &b.losses, &p, &e), CHECKPOINT_EXACT);
    assert_memory_equal(slot.values, network_parameters(a.network), slot.count * sizeof(real));
    write_foreign(a.network, 1, "conv2/biases/Momentum");
    assert_int_equal(training_checkpoint_load(prefix, b.optimizer, &b.losses, &p, &e), CHECKPOINT_FOREIGN);
    for (size_t i = 0; i < slot.count; i++)
        assert_true(slot.values[i] == 0);
    release(&a);
    release(&b);
    release(&c);
}

static void test_failing_disk(void **state)
{
    struct training a = training_of("lenet", OPTIMIZER_MOMENTUM, 0, 1);
    struct training_position p = position;
    struct io_failing counting = { .fail_at = 0 };
    struct io counted = io_failing_table(&counting);

    (void)state;
    save(&a);
    p.global_step = 100;
    assert_int_equal(training_checkpoint_save(&counted, directory, 2, a.optimizer, &a.losses, &p, NULL), OK);
    assert_true(counting.calls > 10);
    for (long n = 1; n <= counting.calls; n++) {
        struct io_failing failing = {
            .fail_at = n, .error_number = ENOSPC, .stay_failed = (int)(n & 1), .short_writes = 1
        };
        struct io io = io_failing_table(&failing);
        struct training b = training_of("lenet", OPTIMIZER_MOMENTUM, 0, 2);
        struct training_position q = { 0 };
        char name[64], path[160];
        struct error e = { 0 };
        int rc;

        p.global_step = 100 + n;
        rc = training_checkpoint_save(&io, directory, 2, a.optimizer, &a.losses, &p, &e);
        assert_true(rc < 0 ? e.message[0] != 0 : 1);
        assert_int_equal(checkpoint_directory_newest(directory, name, sizeof name, NULL), 1);
        snprintf(path, sizeof path, "%s/%s", directory, name);
        assert_int_equal(training_checkpoint_load(path, b.optimizer, &b.losses, &q, NULL), CHECKPOINT_EXACT);
        assert_same_state(&a, &b);
        release(&b);
    }
    release(&a);
}

/* The list of tensors is made once, and is right for the values of each step, whatever became of the training. */
static void test_tensors_of_later_steps(void **state)
{
    static const char *const models[] = { "cifar10_cnn", "resnet32", "lenet" };

    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct training a = training_of(models[m], OPTIMIZER_ADAM, 0.999, 1);
        struct training_tensors tensors;

        optimizer_counters(a.optimizer)->adam_ahead = 3;
        assert_int_equal(training_tensors_of(&tensors, a.optimizer, &a.losses, &position, NULL), OK);
        optimizer_counters(a.optimizer)->adam_ahead = 77;
        for (int64_t step = 0; step < 2; step++) {
            struct training loaded = training_of(models[m], OPTIMIZER_ADAM, 0.999, 2);
            struct training_position p = { 0 };
            struct training_values values;

            update(&a, step);
            training_values_of(&values, a.optimizer, &a.losses, position.global_step);
            assert_int_equal(training_checkpoint_write(NULL, directory, 5, &tensors, &values, NULL), OK);
            snprintf(prefix, sizeof prefix, "%s/model.ckpt-7", directory);
            assert_int_equal(training_checkpoint_load(prefix, loaded.optimizer, &loaded.losses, &p, NULL),
                             CHECKPOINT_EXACT);
            assert_memory_equal(&p, &position, sizeof p);
            assert_int_equal(optimizer_counters(loaded.optimizer)->adam_ahead, 3);
            optimizer_counters(loaded.optimizer)->adam_ahead = 77;
            assert_same_state(&loaded, &a);
            release(&loaded);
        }
        free(tensors.items);
        release(&a);
    }
}

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/training-checkpoint-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_micro_shards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_beta_powers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_foreign, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loss_averages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_integers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failing_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensors_of_later_steps, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
