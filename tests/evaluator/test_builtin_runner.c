/* The built-in runner on cifar10_cnn (it has moving averages) and a small made-up CIFAR-10 test file: which values are
 * loaded, what is said when they do not fit, and that results depend neither on the batch size nor on whether the
 * images are kept. */
#include "base/buffer.h"
#include "base/file.h"
#include "base/random.h"
#include "dataset/transform.h"
#include "evaluator/score/builtin_runner.h"
#include "evaluator/score/evaluation_detail.h"
#include "model/network.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMAGES = 23, RECORD = 3073, SEED = 5, OTHER_SEED = 6 };

static char top[PATH_MAX], data[PATH_MAX], prefix[PATH_MAX];
static const struct checkpoint_identity seven = { .name = "model.ckpt-7", .step = 7 };

enum flaw { NONE, MISSING, WRONG_SHAPE, WRONG_TYPE, DOUBLES };

static int set_up(void **state)
{
    static uint8_t bytes[IMAGES * RECORD];
    struct random r;

    (void)state;
    snprintf(top, sizeof top, "%s/runner.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(top) || file_join(data, sizeof data, top, "test_batch.bin", NULL) ||
        file_join(prefix, sizeof prefix, top, "model.ckpt-7", NULL))
        return -1;
    random_init(&r, SEED, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i % RECORD ? random_below(&r, 256) : random_below(&r, 10));
    return file_replace(NULL, data, bytes, sizeof bytes, NULL);
}

static void remove_checkpoint(void)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s.index", prefix);
    unlink(path);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    unlink(path);
}

static int tear_down(void **state)
{
    (void)state;
    remove_checkpoint();
    unlink(data);
    return rmdir(top);
}

static void write_doubles(struct tensor_bundle_writer *w, const struct variable *v, const float *values)
{
    double *wide = malloc(v->count * sizeof *wide);

    for (size_t i = 0; i < v->count; i++)
        wide[i] = values[i];
    assert_int_equal(
        tensor_bundle_writer_add(w, v->name, TENSOR_DOUBLE, v->rank, v->shape, wide, v->count * sizeof *wide, NULL),
        OK);
    free(wide);
}

/* Plain variables by SEED; moving averages, those of the first `averages` variables, by OTHER_SEED. */
static void write_checkpoint(const char *model, size_t averages, enum flaw flaw)
{
    struct tensor_bundle_writer *w;
    struct network *n, *other;
    size_t count;
    const struct variable *v;

    remove_checkpoint();
    assert_int_equal(network_new(&n, model_find(model), 0, NULL), OK);
    assert_int_equal(network_new(&other, model_find(model), 0, NULL), OK);
    network_initialize(n, SEED);
    network_initialize(other, OTHER_SEED);
    v = network_variables(n, &count);
    assert_int_equal(tensor_bundle_writer_open(&w, NULL, prefix, NULL), OK);
    for (size_t i = 0; i < count; i++) {
        int64_t shape[5] = { 1 }, flat = (int64_t)v[i].count;
        char name[256];

        snprintf(name, sizeof name, "%s" BUILTIN_RUNNER_AVERAGE, v[i].name);
        memcpy(shape + 1, v[i].shape, sizeof v[i].shape);
        if (i < averages)
            assert_int_equal(tensor_bundle_writer_add(w, name, TENSOR_FLOAT, v[i].rank, v[i].shape,
                                                      network_parameters(other) + v[i].offset,
                                                      v[i].count * sizeof(float), NULL),
                             OK);
        if (flaw == MISSING && i < 2)
            continue;
        if (flaw == DOUBLES && i % 2)
            write_doubles(w, &v[i], network_parameters(n) + v[i].offset);
        else if (flaw == WRONG_SHAPE && i == 1)
            assert_int_equal(tensor_bundle_writer_add(w, v[i].name, TENSOR_FLOAT, v[i].rank + 1, shape,
                                                      network_parameters(n) + v[i].offset, v[i].count * sizeof(float),
                                                      NULL),
                             OK);
        else
            assert_int_equal(tensor_bundle_writer_add(w, v[i].name, flaw == WRONG_TYPE ? TENSOR_INT32 : TENSOR_FLOAT,
                                                      v[i].rank, v[i].rank ? v[i].shape : &flat,
                                                      network_parameters(n) + v[i].offset, v[i].count * sizeof(float),
                                                      NULL),
                             OK);
    }
    assert_int_equal(tensor_bundle_writer_add(w, "unknown/Momentum", TENSOR_FLOAT, 0, NULL, "abcd", 4, NULL), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
    network_free(n);
    network_free(other);
}

struct sums {
    int64_t examples, correct;
    double cross_entropy, decay_loss;
};

static double loss(const struct sums *s)
{
    return s->cross_entropy / (double)s->examples + s->decay_loss;
}

/* What the network itself says of these weights, all images in one batch. */
static struct sums direct(uint64_t seed)
{
    struct dataset *d;
    struct network *n;
    struct sums s;
    struct score result;
    struct batch batch;
    int32_t labels[IMAGES];
    uint8_t room[32 * 32 * 3];
    size_t width = 24 * 24 * 3;
    float *images = aligned_alloc(64, IMAGES * width * sizeof *images);

    assert_non_null(images);
    assert_int_equal(dataset_open(&d, "cifar10", top, DATASET_TEST, NULL, NULL), OK);
    for (size_t i = 0; i < IMAGES; i++) {
        const void *sample;
        size_t used;

        assert_int_equal(dataset_read(d, i, room, &sample, &used, NULL), OK);
        labels[i] = (int32_t)field_integer(&d->labels, i);
        transform_find("cifar-tutorial-eval")->apply(d, sample, 0, 0, (int64_t)i, images + i * width);
    }
    assert_int_equal(network_new(&n, model_find("cifar10_cnn"), IMAGES, NULL), OK);
    network_initialize(n, seed);
    batch = images_batch(network_model(n), images, labels, NULL, IMAGES);
    network_score(n, &batch, &result);
    s = (struct sums){ IMAGES, result.hits, result.loss, network_decay_loss(n) };
    network_free(n);
    dataset_free(d);
    free(images);
    return s;
}

static void take(const struct evaluation *v, struct sums *s)
{
    double entropy = evaluation_metrics_value(&v->metrics, EVALUATION_CROSS_ENTROPY);

    *s = (struct sums){ v->examples, v->correct, entropy * (double)v->examples,
                        evaluation_metrics_value(&v->metrics, EVALUATION_LOSS) - entropy };
    assert_true(evaluation_metrics_value(&v->metrics, EVALUATION_PRECISION) ==
                (double)v->correct / (double)v->examples);
}

static int run(const struct builtin_runner_options *options, struct sums *m, enum evaluation_weights *weights,
               struct error *e)
{
    struct runner_job c = { .checkpoint = &seven, .directory = top };
    struct evaluation v = { .examples = -1, .correct = -1 };
    struct scorer runner;
    int rc;

    assert_int_equal(builtin_runner_new(&runner, options, e), OK);
    assert_int_equal(opened_checkpoint_open(&c.opened, CHECKPOINT_BUNDLE, prefix, e), OK);
    rc = runner.load(runner.context, &c, weights, e);
    if (rc == OK)
        rc = runner.evaluate(runner.context, NULL, NULL, &v, e);
    if (rc == OK)
        take(&v, m);
    evaluation_release(&v);
    opened_checkpoint_close(c.opened);
    runner.free(runner.context);
    return rc;
}

static void agrees(const struct sums *got, const struct sums *want)
{
    assert_int_equal(got->examples, want->examples);
    assert_int_equal(got->correct, want->correct);
    assert_true(fabs(loss(got) - loss(want)) <= 1e-6 * fabs(loss(want)));
}

static void test_averages(void **state)
{
    struct sums plain = direct(SEED), averaged = direct(OTHER_SEED), m;
    struct builtin_runner_options options = {
        .model = "cifar10_cnn", .data = "cifar10", .data_directory = top, .moving_averages = 1
    };
    enum evaluation_weights weights;

    (void)state;
    assert_true(fabs(loss(&plain) - loss(&averaged)) > 1e-4);
    write_checkpoint("cifar10_cnn", 10, NONE);
    assert_int_equal(run(&options, &m, &weights, NULL), OK);
    agrees(&m, &averaged);
    assert_int_equal(weights, WEIGHTS_AVERAGES);
    options.moving_averages = 0;
    assert_int_equal(run(&options, &m, &weights, NULL), OK);
    agrees(&m, &plain);
    assert_int_equal(weights, WEIGHTS_VARIABLES);
    write_checkpoint("cifar10_cnn", 0, NONE);
    options.moving_averages = 1;
    assert_int_equal(run(&options, &m, &weights, NULL), OK);
    agrees(&m, &plain);
    assert_int_equal(weights, WEIGHTS_VARIABLES);
    write_checkpoint("cifar10_cnn", 3, NONE);
    assert_int_equal(run(&options, &m, &weights, NULL), OK);
    assert_int_equal(weights, WEIGHTS_MIXED);
    write_checkpoint("cifar10_cnn", 10, MISSING); /* a plain one may be missing where its average is used */
    assert_int_equal(run(&options, &m, &weights, NULL), OK);
}

static void test_batches(void **state)
{
    struct sums want = direct(SEED), m;
    enum evaluation_weights weights;

    (void)state;
    write_checkpoint("cifar10_cnn", 0, NONE);
    for (int batch = 1; batch <= 2 * IMAGES; batch += 3)
        for (int resident = 0; resident < 2; resident++) {
            struct builtin_runner_options options = { .model = "cifar10_cnn",
                                                      .data = "cifar10",
                                                      .batch_size = batch,
                                                      .data_directory = top,
                                                      .image_bytes = resident ? 0 : 1 };

            assert_int_equal(run(&options, &m, &weights, NULL), OK);
            agrees(&m, &want);
        }
    struct builtin_runner_options few = {
        .model = "cifar10_cnn", .data = "cifar10", .data_directory = top, .num_examples = 7
    };

    assert_int_equal(run(&few, &m, &weights, NULL), OK);
    assert_int_equal(m.examples, 7);
}

static void test_threads(void **state)
{
    struct builtin_runner_options options = {
        .model = "cifar10_cnn", .data = "cifar10", .data_directory = top, .batch_size = 4
    };
    struct sums want, m;
    enum evaluation_weights weights;

    (void)state;
    write_checkpoint("cifar10_cnn", 0, NONE);
    assert_int_equal(run(&options, &want, &weights, NULL), OK);
    for (int threads = 2; threads <= 4; threads++)
        for (int resident = 0; resident < 2; resident++) {
            options.threads = threads;
            options.image_bytes = resident ? 0 : 1;
            assert_int_equal(run(&options, &m, &weights, NULL), OK);
            assert_memory_equal(&m, &want, sizeof m); /* to the bit */
        }
    write_checkpoint("cifar10_cnn", 0, DOUBLES); /* every other variable, of the same values */
    assert_int_equal(run(&options, &m, &weights, NULL), OK);
    assert_memory_equal(&m, &want, sizeof m);
}

/* A flipped bit anywhere in the weights is found, however many threads read them. */
static void test_damaged_weights(void **state)
{
    struct builtin_runner_options options = { .model = "cifar10_cnn", .data = "cifar10", .data_directory = top };
    char path[PATH_MAX + 32];
    struct buffer bytes = BUFFER_EMPTY;
    struct sums m;
    enum evaluation_weights weights;

    (void)state;
    write_checkpoint("cifar10_cnn", 0, NONE);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    assert_int_equal(file_read(path, 1 << 30, &bytes, NULL), OK);
    for (options.threads = 1; options.threads <= 3; options.threads++) {
        struct error e = { 0 };
        char *bad = bytes.data + bytes.length / 4 * (size_t)options.threads;

        *bad ^= 8;
        assert_int_equal(file_replace(NULL, path, bytes.data, bytes.length, NULL), OK);
        assert_int_equal(run(&options, &m, &weights, &e), ERR_CORRUPT);
        assert_non_null(strstr(e.message, "CRC mismatch"));
        *bad ^= 8;
    }
    buffer_release(&bytes);
}

static double value(const struct evaluation *v, const char *name)
{
    if (!evaluation_metrics_find(&v->metrics, name))
        fail_msg("no metric %s", name);
    return evaluation_metrics_value(&v->metrics, name);
}

/* All metrics: they agree with each other, and with what is always there. */
static void test_metrics(void **state)
{
    static const char *const classes[] = { "airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck" };
    struct builtin_runner_options options = {
        .model = "cifar10_cnn", .data = "cifar10", .data_directory = top, .metrics = METRIC_ALL, .detail_every = 2
    };
    struct runner_job c = { .checkpoint = &seven, .directory = top, .written = 1 };
    struct scorer runner;
    enum evaluation_weights weights;

    (void)state;
    write_checkpoint("cifar10_cnn", 0, NONE);
    assert_int_equal(builtin_runner_new(&runner, &options, NULL), OK);
    for (c.index = 0; c.index < 3; c.index++) {
        struct evaluation v = { .examples = -1, .correct = -1 };
        double hits = 0;

        assert_int_equal(opened_checkpoint_open(&c.opened, CHECKPOINT_BUNDLE, prefix, NULL), OK);
        assert_int_equal(runner.load(runner.context, &c, &weights, NULL), OK);
        assert_int_equal(runner.evaluate(runner.context, NULL, NULL, &v, NULL), OK);
        opened_checkpoint_close(c.opened);
        assert_int_equal(v.detail != NULL, c.index % 2 == 0);
        assert_true(value(&v, "precision_top_5") >= value(&v, EVALUATION_PRECISION));
        assert_true(value(&v, "examples_per_second") > 0 && value(&v, "seconds_per_evaluation") > 0);
        assert_true(value(&v, "lag_seconds") > 1e9 && !evaluation_metrics_find(&v.metrics, "lag_steps"));
        for (int k = 0; v.detail && k < 10; k++) {
            char name[64];

            assert_string_equal(v.detail->names[k], classes[k]);
            snprintf(name, sizeof name, "class_recall/%s", classes[k]);
            if (evaluation_metrics_find(&v.metrics, name))
                assert_true(value(&v, name) == classification_recall(&v.detail->counts, k));
            hits += (double)v.detail->counts.confusion[k * 10 + k];
        }
        if (v.detail)
            assert_true(hits / (double)IMAGES == value(&v, EVALUATION_PRECISION));
        evaluation_release(&v);
    }
    runner.free(runner.context);
}

static void test_does_not_fit(void **state)
{
    static const struct {
        const char *model;
        enum flaw flaw;
        const char *words[3];
    } cases[] = {
        { "cifar10_cnn", MISSING, { "2 of 10", "conv1/weights is missing", "conv1/biases is missing" } },
        { "cifar10_cnn", WRONG_SHAPE, { "1 of 10", "conv1/biases has shape [1,64], wanted [64]", "model.ckpt-7" } },
        { "cifar10_cnn", WRONG_TYPE, { "10 of 10", "int32", "cifar10_cnn" } },
        { "resnet32", NONE, { "10 of 10", "local3/weights is missing", "cifar10_cnn" } },
    };
    struct builtin_runner_options options = { .model = "cifar10_cnn", .data = "cifar10", .data_directory = top };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        struct sums m;
        enum evaluation_weights weights;

        write_checkpoint(cases[i].model, 0, cases[i].flaw);
        assert_true(run(&options, &m, &weights, &e) < 0);
        for (int k = 0; k < 3; k++)
            if (!strstr(e.message, cases[i].words[k]))
                fail_msg("no '%s' in: %s", cases[i].words[k], e.message);
        assert_null(strstr(e.message, "..."));
    }
}

/* A hundred complaints: the sentence has the first, however long the path, and ends with a file that has all. */
static void test_many_complaints(void **state)
{
    struct builtin_runner_options options = { .model = "resnet32", .data = "cifar10", .data_directory = top };
    struct runner_job c = { .checkpoint = &seven, .directory = top, .eval_directory = top };
    struct buffer text = BUFFER_EMPTY;
    struct error e = { 0 };
    struct scorer runner;
    enum evaluation_weights weights;
    char path[PATH_MAX + 32], end[PATH_MAX + 64];
    size_t lines = 0, variables;
    struct network *n;

    (void)state;
    write_checkpoint("cifar10_cnn", 0, NONE);
    assert_int_equal(network_new(&n, model_find("resnet32"), 0, NULL), OK);
    network_variables(n, &variables);
    network_free(n);
    assert_int_equal(builtin_runner_new(&runner, &options, &e), OK);
    assert_int_equal(opened_checkpoint_open(&c.opened, CHECKPOINT_BUNDLE, prefix, &e), OK);
    assert_true(runner.load(runner.context, &c, &weights, &e) < 0);
    snprintf(path, sizeof path, "%s/logs/7-model.ckpt-7.log", top);
    assert_non_null(strstr(e.message, "init/init_conv/DW is missing"));
    snprintf(end, sizeof end, "...; all in %s", path);
    assert_string_equal(e.message + strlen(e.message) - strlen(end), end);
    assert_true(strlen(strstr(e.message, "init/init_conv/DW")) <= 340);
    assert_int_equal(file_read(path, 1 << 20, &text, NULL), OK);
    for (size_t i = 0; i < text.length; i++)
        lines += text.data[i] == '\n';
    assert_int_equal(lines, variables);
    assert_non_null(strstr(buffer_text(&text), "\nlogit/biases is missing\n"));
    buffer_release(&text);
    opened_checkpoint_close(c.opened);
    runner.free(runner.context);
    unlink(path);
    snprintf(path, sizeof path, "%s/logs", top);
    rmdir(path);
}

static void test_set_up(void **state)
{
    static const struct {
        struct builtin_runner_options options;
        const char *word;
    } cases[] = {
        { { .model = "nothing", .data = "cifar10", .data_directory = top }, "resnet32" },
        { { .model = "cifar10_cnn", .data = "nothing", .data_directory = top }, "nothing" },
        { { .model = "cifar10_cnn", .data = "cifar10", .data_directory = "/nonexistent" }, "/nonexistent" },
        { { .model = "cifar10_cnn", .data = "cifar10", .data_directory = top, .num_examples = IMAGES + 1 }, "23" },
        { { .model = "lenet", .data = "cifar10", .data_directory = top }, "lenet" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        struct scorer runner;

        assert_true(builtin_runner_new(&runner, &cases[i].options, &e) < 0);
        if (!strstr(e.message, cases[i].word))
            fail_msg("no '%s' in: %s", cases[i].word, e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_averages),        cmocka_unit_test(test_batches), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_damaged_weights), cmocka_unit_test(test_metrics), cmocka_unit_test(test_does_not_fit),
        cmocka_unit_test(test_many_complaints), cmocka_unit_test(test_set_up),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
