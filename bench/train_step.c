/*
 * train_step - how fast one rank trains and infers: images/s, and the time of each kind of layer. Times are of the
 * processor, which other programs change little.
 * usage: train_step MODEL BATCH STEPS [bfloat16]     (noise for images: the arithmetic does not care)
 */
#include "base/random.h"
#include "model/network.h"
#include "model/network_internal.h"
#include "tests/model/images_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double processor_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A kind of layers that reads the clock, in the place of another. */
struct timed {
    struct layer_kind kind;
    const struct layer_kind *original;
    double forward, backward; /* seconds, over all layers of the kind */
};

static const struct model *original_model;
static struct timed kinds[32];
static size_t kind_count;

static struct timed *timed_of(const struct layer *l)
{
    return (struct timed *)(uintptr_t)l->kind; /* its first member */
}

static void timed_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const double start = processor_seconds();

    timed_of(l)->original->forward(l, r, s);
    timed_of(l)->forward += processor_seconds() - start;
}

static void timed_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const double start = processor_seconds();

    timed_of(l)->original->backward(l, r, s);
    timed_of(l)->backward += processor_seconds() - start;
}

/* The model, with kinds of layers that read the clock. */
static int build_timed(struct network_builder *b, struct error *e)
{
    const int rc = original_model->build(b, e);

    for (int i = 0; i < b->plan.layer_count; i++) {
        struct layer *l = &b->plan.layers[i];
        size_t k = 0;

        while (k < kind_count && kinds[k].original != l->kind)
            k++;
        if (k == sizeof kinds / sizeof *kinds)
            continue;
        if (k == kind_count) {
            kinds[kind_count++] = (struct timed){ *l->kind, l->kind, 0, 0 };
            kinds[k].kind.forward = timed_forward;
            kinds[k].kind.backward = l->kind->backward ? timed_backward : NULL;
        }
        l->kind = &kinds[k].kind;
    }
    return rc;
}

/* Where the time of a step goes. Reading the clock costs a few per cent, so this is a network of its own. */
static int profile(const struct model *m, const struct batch *batch, int steps)
{
    struct model timed = *m;
    struct score result;
    struct network *n;

    original_model = m;
    timed.build = build_timed;
    if (network_new(&n, &timed, batch->count, NULL) < 0)
        return 1;
    network_initialize(n, 1);
    for (int i = 0; i < steps; i++) {
        struct batch here = *batch;

        network_train(n, at_step(&here, i), 1, NULL, &result);
    }
    network_free(n);
    printf("%-22s %10s %10s\n", "layer, ms a step", "forward", "backward");
    for (size_t k = 0; k < kind_count; k++)
        printf("%-22s %10.2f %10.2f\n", kinds[k].kind.name, 1e3 * kinds[k].forward / steps,
               1e3 * kinds[k].backward / steps);
    return 0;
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
            const double start = processor_seconds();
            network_train(n, at_step(&batch, i), 1, NULL, &result);
            seconds[i] = processor_seconds() - start;
        }
        qsort(seconds, (size_t)steps, sizeof *seconds, compare_doubles);
        printf("%s, batch %d, %s: training %.1f images/s (best %.1f)", m->name, count, network_backend(),
               count / seconds[steps / 2], count / seconds[0]);
        network_score(n, &batch, &result);
        for (int i = 0; i < steps; i++) {
            const double start = processor_seconds();
            network_score(n, &batch, &result);
            seconds[i] = processor_seconds() - start;
        }
        qsort(seconds, (size_t)steps, sizeof *seconds, compare_doubles);
        printf(", inference %.1f images/s (best %.1f)\n", count / seconds[steps / 2], count / seconds[0]);
        rc = profile(m, &batch, steps);
    }
    free(images);
    free(labels);
    free(seconds);
    return rc;
}

int main(int argc, char **argv)
{
    const int rounded = argc == 5 && !strcmp(argv[4], "bfloat16"), given = argc == 4 || rounded;
    const struct model *m = given ? model_find(argv[1]) : NULL;
    const int count = given ? atoi(argv[2]) : 0, steps = given ? atoi(argv[3]) : 0;
    struct model own;
    struct error e = { 0 };
    struct network *n;
    int rc;

    if (!m || count < 1 || steps < 1) {
        fprintf(stderr, "usage: train_step MODEL BATCH STEPS [bfloat16]\n");
        return 2;
    }
    own = *m;
    own.precision = rounded ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    m = &own;
    if (network_new(&n, m, count, &e) < 0) {
        fprintf(stderr, "train_step: %s\n", e.message);
        return 2;
    }
    rc = run(n, count, steps);
    network_free(n);
    return rc;
}
