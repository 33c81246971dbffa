/*
 * train_step - how fast one rank trains and infers: images/s, and the time of each kind of layer.
 * usage: train_step MODEL BATCH STEPS     (noise for images: the arithmetic does not care)
 */
#include "base/clock.h"
#include "base/random.h"
#include "model/network.h"
#include "model/network_profile.h"
#include "tests/model/images_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_layers(const struct network *n, int steps)
{
    struct network_profile_row rows[32];
    const size_t count = network_profile_read(n, rows, sizeof rows / sizeof *rows);

    printf("%-22s %10s %10s\n", "layer, ms a step", "forward", "backward");
    for (size_t i = 0; i < count; i++)
        printf("%-22s %10.2f %10.2f\n", rows[i].kind, 1e3 * rows[i].forward / steps, 1e3 * rows[i].backward / steps);
}

static int run(struct network *n, int count, int steps)
{
    const struct model *m = network_model(n);
    const size_t size = (size_t)count * (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    real *images = malloc(size * sizeof *images);
    int32_t *labels = malloc((size_t)count * sizeof *labels);
    double *seconds = calloc((size_t)steps, sizeof *seconds);
    int rc = 1;

    if (images && labels && seconds) {
        struct batch batch = images_batch(m, images, labels, NULL, count);
        struct score result;
        struct random r;

        random_init(&r, 1, RANDOM_TEST, 0, 0);
        for (size_t i = 0; i < size; i++)
            images[i] = (real)random_normal(&r);
        for (int i = 0; i < count; i++)
            labels[i] = (int32_t)random_below(&r, (uint64_t)m->classes);
        network_initialize(n, 1);
        network_train(n, at_step(&batch, 0), 1, NULL, &result);
        for (int i = 0; i < steps; i++) {
            const double start = clock_monotonic();
            network_train(n, at_step(&batch, i), 1, NULL, &result);
            seconds[i] = clock_monotonic() - start;
        }
        qsort(seconds, (size_t)steps, sizeof *seconds, compare_doubles);
        printf("%s, batch %d, %s: training %.1f images/s (best %.1f)", m->name, count, network_backend(),
               count / seconds[steps / 2], count / seconds[0]);
        network_score(n, &batch, &result);
        for (int i = 0; i < steps; i++) {
            const double start = clock_monotonic();
            network_score(n, &batch, &result);
            seconds[i] = clock_monotonic() - start;
        }
        qsort(seconds, (size_t)steps, sizeof *seconds, compare_doubles);
        printf(", inference %.1f images/s (best %.1f)\n", count / seconds[steps / 2], count / seconds[0]);
        if (network_profile_start(n)) {
            for (int i = 0; i < steps; i++)
                network_train(n, at_step(&batch, i), 1, NULL, &result);
            print_layers(n, steps);
        }
        rc = 0;
    }
    free(images);
    free(labels);
    free(seconds);
    return rc;
}

int main(int argc, char **argv)
{
    const struct model *m = argc == 4 ? model_find(argv[1]) : NULL;
    const int count = argc == 4 ? atoi(argv[2]) : 0, steps = argc == 4 ? atoi(argv[3]) : 0;
    struct error e = { 0 };
    struct network *n;
    int rc;

    if (!m || count < 1 || steps < 1) {
        fprintf(stderr, "usage: train_step MODEL BATCH STEPS\n");
        return 2;
    }
    if (network_new(&n, m, count, &e) < 0) {
        fprintf(stderr, "train_step: %s\n", e.message);
        return 2;
    }
    rc = run(n, count, steps);
    network_free(n);
    return rc;
}
