/*
 * model_tool.c - the models by hand, for the peer tests: numbers go in and out as raw little-endian files.
 *
 *   model_tool variables MODEL                                 one line each: kind offset decay name size...
 *   model_tool infer MODEL PREFIX IMAGES OUT                   weights from checkpoint PREFIX; OUT: logits
 *   model_tool train MODEL PREFIX IMAGES LABELS WEIGHTS SAMPLE OUT
 *                                                              one training pass; samples are numbered from SAMPLE;
 *                                                              OUT: the exchange vector; prints cross entropy, correct
 *                                                              answers and weight decay's loss
 *   model_tool optimize MODEL PREFIX KIND RATE MOMENTUM AVERAGE CLIP SAMPLES SUMS OUT
 *                                                              updates 0, 1, ... by the exchange vectors in SUMS, each
 *                                                              added over SAMPLES, gradients clipped to norm CLIP (0:
 *                                                              not); OUT: all arrays of the optimizer
 *   model_tool steps MODEL PREFIX IMAGES LABELS BATCH RATE MOMENTUM OUT
 *                                                              a step of momentum for each BATCH images; prints the mean
 *                                                              cross entropy of each; OUT: the weights after them
 *   model_tool transform NAME DATA DIRECTORY FIRST COUNT OUT   test images FIRST, FIRST + 1, ... as a model is fed them
 *
 * MODEL is the name of a model, or a file with a model.
 */
#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/transform.h"
#include "model/file/recipe.h"
#include "tests/model/images_batch.h"
#include "tests/peers/loaded_network.h"
#include "trainer/optimizers/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 30 };

static size_t image_size(const char *name)
{
    const struct model *model = loaded_model(name, NULL);

    return model ? (size_t)model->height * (size_t)model->width * (size_t)model->channels * sizeof(float) : 1;
}

static int put_file(const char *path, const void *bytes, size_t n, struct error *e)
{
    return file_replace(NULL, path, bytes, n, e);
}

static int print_variables(char **argv, struct error *e)
{
    const struct variable *variables;
    struct network *n = NULL;
    size_t count;
    int rc = loaded_network(&n, argv[0], NULL, 0, e);

    if (rc == OK) {
        variables = network_variables(n, &count);
        for (size_t i = 0; i < count; i++) {
            const struct variable *v = &variables[i];

            printf("%s %zu %.9g %s", v->kind == VARIABLE_WEIGHT ? "weight" : "statistic", v->offset, v->decay, v->name);
            for (int d = 0; d < v->rank; d++)
                printf(" %lld", (long long)v->shape[d]);
            printf("\n");
        }
    }
    network_free(n);
    return rc;
}

static int infer(char **argv, struct error *e)
{
    struct buffer images = BUFFER_EMPTY;
    struct network *n = NULL;
    real *logits = NULL;
    struct field input;
    size_t count, row;
    int rc;

    if ((rc = file_read(argv[2], FILE_LIMIT, &images, e)) < 0)
        goto done;
    count = images.length / image_size(argv[0]);
    if ((rc = loaded_for_inference(&n, argv[0], argv[1], (int)count, e)) < 0)
        goto done;
    row = (size_t)network_model(n)->classes * (size_t)model_labels(network_model(n));
    if (!(logits = calloc(count * row, sizeof *logits))) {
        rc = error_memory(e, NULL, "left");
        goto done;
    }
    input = model_input(network_model(n), images.data, (int)count);
    network_infer(n, &input, logits);
    rc = put_file(argv[3], logits, count * row * sizeof *logits, e);
done:
    free(logits);
    network_free(n);
    buffer_release(&images);
    return rc;
}

static int train(char **argv, struct error *e)
{
    struct buffer images = BUFFER_EMPTY, labels = BUFFER_EMPTY, weights = BUFFER_EMPTY;
    struct network *n = NULL;
    struct score result;
    struct batch batch;
    int64_t *samples = NULL;
    size_t count;
    int rc, each;

    if ((rc = file_read(argv[2], FILE_LIMIT, &images, e)) < 0 ||
        (rc = file_read(argv[3], FILE_LIMIT, &labels, e)) < 0 || (rc = file_read(argv[4], FILE_LIMIT, &weights, e)) < 0)
        goto done;
    count = images.length / image_size(argv[0]);
    if ((rc = loaded_network(&n, argv[0], argv[1], (int)count, e)) < 0)
        goto done;
    each = model_labels(network_model(n));
    if (labels.length != count * (size_t)each * sizeof(int32_t) || weights.length != labels.length) {
        rc = error_set(e, ERR_ARG, "%zu bytes of labels do not fit %zu images", labels.length, count);
        goto done;
    }
    if (!(samples = calloc(count + 1, sizeof *samples))) {
        rc = error_memory(e, NULL, "left");
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        samples[i] = atoll(argv[5]) + (int64_t)i;
    batch = images_batch(network_model(n), images.data, (const int32_t *)(const void *)labels.data, samples,
                         (int)count);
    batch.fields[FIELD_LABELS].rank = 2;
    batch.fields[FIELD_LABELS].shape[1] = each;
    batch.fields[FIELD_WEIGHTS] = (struct field){ weights.data, ELEMENT_FLOAT32, 2, { (int32_t)count, each } };
    batch.field_count = FIELD_WEIGHTS + 1;
    network_train(n, at_step(&batch, 0), 1, NULL, &result);
    printf("%.9g %lld %.9g\n", result.loss, (long long)result.hits, network_decay_loss(n));
    rc = put_file(argv[6], network_exchange(n),
                  (network_parameter_count(n) + network_statistic_count(n)) * sizeof(real), e);
done:
    network_free(n);
    free(samples);
    buffer_release(&weights);
    buffer_release(&labels);
    buffer_release(&images);
    return rc;
}

static int optimize(char **argv, struct error *e)
{
    struct optimizer_options options = { .kind = OPTIMIZER_SGD,
                                         .learning_rate = atof(argv[3]),
                                         .schedule = { .recipe = &recipe_find(argv[0])->schedule },
                                         .momentum = atof(argv[4]),
                                         .moving_average = atof(argv[5]),
                                         .clip_norm = atof(argv[6]) };
    struct buffer sums = BUFFER_EMPTY, arrays = BUFFER_EMPTY;
    struct optimizer *o = NULL;
    struct network *n = NULL;
    real *sum = NULL;
    size_t width;
    int rc;

    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        if (!strcmp(argv[2], optimizer_kind_names[kind]))
            options.kind = (enum optimizer_kind)kind;
    if ((rc = file_read(argv[8], FILE_LIMIT, &sums, e)) < 0 || (rc = loaded_network(&n, argv[0], argv[1], 0, e)) < 0 ||
        (rc = optimizer_new(&o, n, &options, e)) < 0)
        goto done;
    width = network_exchange_count(n) - 1;
    if (!(sum = calloc(width + 1, sizeof *sum))) {
        rc = error_memory(e, NULL, "left");
        goto done;
    }
    sum[width] = (real)atoll(argv[7]);
    for (size_t step = 0; (step + 1) * width * sizeof(real) <= sums.length; step++) {
        memcpy(sum, sums.data + step * width * sizeof *sum, width * sizeof *sum);
        optimizer_measure(o, (int64_t)step, sum);
        optimizer_apply(o, (int64_t)step, sum, 0, width);
    }
    for (int kind = 0; kind < ARRAY_KINDS; kind++) {
        struct optimizer_array a = optimizer_array(o, (enum optimizer_array_kind)kind);

        printf("%zu\n", a.count);
        buffer_append(&arrays, a.values, a.count * sizeof(real));
    }
    rc = buffer_ok(&arrays) ? put_file(argv[9], arrays.data, arrays.length, e) : error_memory(e, NULL, "left");
done:
    free(sum);
    optimizer_free(o);
    network_free(n);
    buffer_release(&arrays);
    buffer_release(&sums);
    return rc;
}

static int steps(char **argv, struct error *e)
{
    struct optimizer_options options = { .kind = OPTIMIZER_MOMENTUM,
                                         .learning_rate = atof(argv[5]),
                                         .momentum = atof(argv[6]) };
    const size_t size = image_size(argv[0]), batch = strtoul(argv[4], NULL, 10);
    struct buffer images = BUFFER_EMPTY, labels = BUFFER_EMPTY;
    struct optimizer *o = NULL;
    struct network *n = NULL;
    int64_t samples[256];
    int rc;

    if ((rc = file_read(argv[2], FILE_LIMIT, &images, e)) < 0 || (rc = file_read(argv[3], FILE_LIMIT, &labels, e)) < 0)
        goto done;
    if (batch < 1 || batch > 256 || labels.length * size != images.length * sizeof(int32_t)) {
        rc = error_set(e, ERR_ARG, "the labels do not fit the images, or the batch is too large");
        goto done;
    }
    if ((rc = loaded_network(&n, argv[0], argv[1], (int)batch, e)) < 0 || (rc = optimizer_new(&o, n, &options, e)) < 0)
        goto done;
    for (size_t step = 0; (step + 1) * batch * size <= images.length; step++) {
        struct score result;
        struct batch b;

        for (size_t i = 0; i < batch; i++)
            samples[i] = (int64_t)(step * batch + i);
        b = images_batch(network_model(n), (const real *)(const void *)(images.data + step * batch * size),
                         (const int32_t *)(const void *)labels.data + step * batch, samples, (int)batch);
        network_train(n, at_step(&b, (int64_t)step), 1, NULL, &result);
        optimizer_measure(o, (int64_t)step, network_exchange(n));
        optimizer_apply(o, (int64_t)step, network_exchange(n), 0, network_exchange_count(n) - 1);
        printf("%.9g\n", result.loss / result.weight);
    }
    rc = put_file(argv[7], network_parameters(n), network_parameter_count(n) * sizeof(real), e);
done:
    optimizer_free(o);
    network_free(n);
    buffer_release(&labels);
    buffer_release(&images);
    return rc;
}

static int transform(char **argv, struct error *e)
{
    const struct transform *t = transform_find(argv[0]);
    size_t first = strtoul(argv[3], NULL, 10), count = strtoul(argv[4], NULL, 10), bytes, floats;
    const struct dataset_words words = { .image_size = getenv("IMAGE_SIZE"), .example_keys = getenv("EXAMPLE_KEYS") };
    struct dataset_reading how;
    struct dataset *d = NULL;
    void *room = NULL;
    float *out = NULL;
    int rc;

    if (!t)
        return error_set(e, ERR_ARG, "unknown transform %s", argv[0]);
    if ((rc = dataset_reading_parse(&how, &words, e)) < 0 ||
        (rc = dataset_open_as(&d, argv[1], argv[2], DATASET_TEST, NULL, &how, e)) < 0 ||
        (rc = transform_check(t, d, e)) < 0)
        goto done;
    bytes = (size_t)d->height * (size_t)d->width * (size_t)d->channels;
    floats = t->height ? (size_t)t->height * (size_t)t->width * (size_t)t->channels : bytes;
    if (first > d->count || count > d->count - first || !(room = malloc(bytes)) ||
        !(out = calloc(count * floats + 1, sizeof *out))) {
        rc = error_set(e, ERR_ARG, "images %zu and %zu more cannot be taken", first, count);
        goto done;
    }
    for (size_t i = 0; i < count && rc == OK; i++) {
        const void *sample;
        size_t used;

        if ((rc = dataset_read(d, first + i, room, &sample, &used, e)) == OK)
            t->apply(d, sample, 1, 0, (int64_t)i, out + i * floats);
    }
    if (rc == OK)
        rc = put_file(argv[5], out, count * floats * sizeof *out, e);
done:
    free(out);
    free(room);
    dataset_free(d);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        int (*run)(char **argv, struct error *e);
    } commands[] = {
        { "variables", 1, print_variables }, { "infer", 4, infer },         { "train", 7, train },
        { "optimize", 10, optimize },        { "transform", 6, transform }, { "steps", 8, steps },
    };
    struct error e = { 0 };
    int rc;

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (argc != 2 + commands[i].arguments || strcmp(argv[1], commands[i].name) != 0)
            continue;
        rc = commands[i].run(argv + 2, &e);
        loaded_release();
        if (rc == OK)
            return 0;
        fprintf(stderr, "model_tool: %s\n", e.message);
        return 1;
    }
    fprintf(stderr, "model_tool: see the head of its source for the commands\n");
    return 2;
}
