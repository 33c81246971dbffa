/*
 * steps.h - one training step of each model on fixed noise, and what the double build makes of it. The float build, by
 * whichever convolution code, is held to the same figures: test_steps.c, and test_gradient_steps.c for double.
 */
#ifndef TESTS_MODEL_STEPS_H
#define TESTS_MODEL_STEPS_H

#include "base/random.h"
#include "model/network.h"
#include "tests/model/images_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_COUNT = 6 };

/* Sums over everything that a step gives: a wrong element anywhere moves them. */
struct step_figures {
    double loss, gradient_norm, gradient_sum, statistics_sum, inference_loss, first_logit;
};

static const struct {
    const char *model;
    struct step_figures want;
} step_cases[] = {
    { "lenet", { 13.9091016919, 53.7625849252, 31.4050917522, 0, 15.5336142612, -0.484758547614 } },
    { "cifar10_cnn", { 14.0711295067, 44.1625547711, -16.2914942412, 0, 14.0711295067, 0.14167212186 } },
    { "resnet32", { 13.8381695389, 22.0910168391, 14.8784958826, 170.773594497, 13.8381695604, -0.194281836011 } },
};

static inline struct step_figures step_figures(const char *name, struct error *e)
{
    struct step_figures f = { NAN, NAN, NAN, NAN, NAN, NAN };
    const struct model *m = model_find(name);
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
        random_init(&r, 1, RANDOM_TEST, 0, 1);
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
            network_statistics(n)[i] = (real)(float)(x / (double)STEP_COUNT);
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
