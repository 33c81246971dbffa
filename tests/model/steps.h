/*
 * steps.h - one training step of each model on fixed noise, and what the double build makes of it. The float build, by
 * whichever convolution code, is held to the same figures: test_steps.c, and test_gradient_steps.c for double.
 */
#ifndef TESTS_MODEL_STEPS_H
#define TESTS_MODEL_STEPS_H

#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_COUNT = 6 };

/* Sums over everything that a step gives: a wrong element anywhere moves them. */
struct step_figures {
    double loss, gradient_norm, gradient_sum, statistics_sum, inference_loss, first_logit;
};

/* Convolutions, each behind a batch norm, without an activation: a gradient is a smooth function of all numbers. */
static inline int build_smooth(struct network_builder *b, struct error *e)
{
    const struct kernel_options kernel = { INITIAL_HE_FAN_OUT, 0, 0 };
    const struct batch_norm_options plain = { .epsilon = 0.001, .slope = 1 };
    char name[16];
    int x = network_builder_images(b);

    (void)e;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "conv%d", i);
        if (i == 3 || i == 6) {
            x = network_builder_average_pool(b, x, window_valid(2, 2));
            x = network_builder_widen(b, x, i == 3 ? 32 : 64);
        }
        x = network_builder_convolution(b, x, name,
                                        i < 3   ? 16
                                        : i < 6 ? 32
                                                : 64,
                                        window_same(i == 5 ? 5 : 3, 1), &kernel);
        x = network_builder_batch_norm(b, x, name, &plain);
    }
    x = network_builder_average_pool(b, x, window_valid(8, 8));
    x = network_builder_dense(b, x, "weights", 10, &kernel);
    x = network_builder_bias(b, x, "biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

static const struct model model_smooth = {
    .name = "smooth",
    .height = 32,
    .width = 32,
    .channels = 3,
    .classes = 10,
    .build = build_smooth,
};

/*
 * noise: which images and weights. A gradient jumps where rounding takes an activation over its kink, which no bound can
 * allow for. Of twelve noises, that of resnet32 is one where it does not, whatever computes the convolutions: direct
 * convolutions jump in three of them, Winograd's, which round more, in ten. Without kinks neither jumps.
 */
static const struct {
    const char *model; /* or "smooth" */
    uint64_t noise;
    struct step_figures want;
} step_cases[] = {
    { "lenet", 1, { 13.9091016919, 53.7625849252, 31.4050917522, 0, 15.5336142612, -0.484758547614 } },
    { "cifar10_cnn", 1, { 14.0711295067, 44.1625547711, -16.2914942412, 0, 14.0711295067, 0.14167212186 } },
    { "resnet32", 3, { 12.1421647005, 18.9212345197, -15.2925634429, 135.809103502, 12.1421647568, -0.159002576935 } },
    { "smooth", 1, { 13.5492099777, 30.6607980273, -16.2562403662, -143.453459245, 13.5492100056, 0.0975606422209 } },
};

static inline struct step_figures step_figures(const char *name, uint64_t noise, struct error *e)
{
    struct step_figures f = { NAN, NAN, NAN, NAN, NAN, NAN };
    const struct model *m = strcmp(name, model_smooth.name) ? model_find(name) : &model_smooth;
    const size_t size = (size_t)STEP_COUNT * (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    struct network *n;
    struct score result;
    int32_t labels[STEP_COUNT];
    struct random r;

    if (network_new(&n, m, STEP_COUNT, e) < 0)
        return f;
    const size_t parameters = network_parameter_count(n), statistics = network_statistic_count(n);
    real *images = malloc(size * sizeof *images), logits[STEP_COUNT * 10];
    struct batch batch = images_batch(m, images, labels, NULL, STEP_COUNT);

    if (images) {
        network_initialize(n, 1);
        random_init(&r, 1, RANDOM_TEST, 0, noise);
        for (size_t i = 0; i < size; i++)
            images[i] = (real)(float)random_normal(&r);
        for (int i = 0; i < STEP_COUNT; i++)
            labels[i] = (int32_t)random_below(&r, (uint64_t)m->classes);
        for (size_t i = 0; i < parameters; i++) /* the same numbers in both builds */
            network_parameters(n)[i] = (real)(float)(network_parameters(n)[i] + (real)(0.02 * random_normal(&r)));
        network_train(n, at_step(&batch, 1), 1, NULL, &result);
        f = (struct step_figures){ .loss = result.loss };
        for (size_t i = 0; i < parameters; i++) {
            const double g = (double)network_exchange(n)[i];
            f.gradient_norm += g * g;
            f.gradient_sum += g * cos(0.7 * (double)i);
        }
        f.gradient_norm = sqrt(f.gradient_norm);
        for (size_t i = 0; i < statistics; i++) {
            const double x = (double)network_exchange(n)[parameters + i];
            f.statistics_sum += x * cos(0.3 * (double)i);
            network_statistics(n)[i] = (real)(float)(x / STEP_COUNT);
        }
        network_score(n, &batch, &result);
        f.inference_loss = result.loss;
        network_infer(n, &batch.fields[FIELD_INPUT], logits);
        f.first_logit = (double)logits[0];
    }
    free(images);
    network_free(n);
    return f;
}

#endif
