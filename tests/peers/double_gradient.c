/*
 * double_gradient.c - a gradient of the model code with real = double, for peer tests: numbers are raw and little-endian.
 *
 *   double_gradient MODEL VALUES IMAGES LABELS OUT
 *
 * MODEL: a model file. VALUES: float64, the weights in the order of model_tool's list, then the statistics. IMAGES:
 * float64, LABELS: int32, of one batch. OUT: the exchange vector's gradients, float64. Prints the loss, a sum over the
 * batch.
 */
#include "base/file.h"
#include "model/file/model_file.h"
#include "model/network.h"
#include "tests/model/images_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 30 };

static int train(struct network *n, const struct buffer *values, const struct buffer *images,
                 const struct buffer *labels, const char *out, struct error *e)
{
    const size_t weights = network_parameter_count(n), statistics = network_statistic_count(n);
    const int count = (int)(labels->length / sizeof(int32_t));
    const struct model *m = network_model(n);
    int64_t *samples = calloc((size_t)count + 1, sizeof *samples);
    struct score score;
    struct batch batch;

    if (!samples)
        return error_memory(e, NULL, "for the samples");
    if (values->length != (weights + statistics) * sizeof(real) ||
        images->length != (size_t)(count * m->height * m->width * m->channels) * sizeof(real)) {
        free(samples);
        return error_set(e, ERR_ARG, "the sizes of values, images and labels are not those of the model");
    }
    memcpy(network_parameters(n), values->data, weights * sizeof(real));
    memcpy(network_statistics(n), values->data + weights * sizeof(real), statistics * sizeof(real));
    batch = images_batch(m, images->data, (const int32_t *)(const void *)labels->data, samples, count);
    network_train(n, at_step(&batch, 0), 1, NULL, &score);
    free(samples);
    printf("%.17g\n", score.loss);
    return file_replace(NULL, out, network_exchange(n), weights * sizeof(real), e);
}

static int run(char **argv, struct error *e)
{
    struct buffer values = BUFFER_EMPTY, images = BUFFER_EMPTY, labels = BUFFER_EMPTY;
    struct model_file *file = NULL;
    struct network *n = NULL;
    int rc;

    if ((rc = model_file_open(&file, argv[1], e)) == OK && (rc = file_read(argv[2], FILE_LIMIT, &values, e)) == OK &&
        (rc = file_read(argv[3], FILE_LIMIT, &images, e)) == OK &&
        (rc = file_read(argv[4], FILE_LIMIT, &labels, e)) == OK &&
        (rc = network_new(&n, &file->model, (int)(labels.length / sizeof(int32_t)), e)) == OK)
        rc = train(n, &values, &images, &labels, argv[5], e);
    network_free(n);
    model_file_free(file);
    buffer_release(&values);
    buffer_release(&images);
    buffer_release(&labels);
    return rc;
}

int main(int argc, char **argv)
{
    struct error e = { 0 };

    if (argc != 6) {
        fprintf(stderr, "usage: double_gradient MODEL VALUES IMAGES LABELS OUT\n");
        return 2;
    }
    if (run(argv, &e) == OK)
        return 0;
    fprintf(stderr, "double_gradient: %s\n", e.message);
    return 1;
}
