/*
 * ResNet-50 (He et al. 2015, "Deep residual learning for image recognition"): a 7x7 convolution, 16 units of three
 * convolutions in four stages, the mean over all pixels, and one dense layer. 25,557,032 parameters and 53,120 moving
 * statistics, in the names of torchvision, whose published weights can be loaded.
 */
#include "model/models/residual_50.h"

#include <stdio.h>

enum { STAGES = 4, CLASSES = 1000 };
static const int units[STAGES] = { 3, 4, 6, 3 };
static const double epsilon = 1e-5;

struct unit {
    char scope[32]; /* "layer1.0." */
    const struct residual_50 *of;
};

/* A convolution, batch norm and, unless left out, ReLU. */
static int normalized(struct network_builder *b, int x, const struct unit *u, const char *name, const char *norm,
                      int channels, struct window window, enum relu relu)
{
    const struct kernel_options kernel = { u->of->initial, 0, u->of->head.decay };
    const struct batch_norm_options options = {
        .epsilon = epsilon, .slope = relu == RELU ? 0 : 1, .unbiased = 1, .names = BATCH_NORM_TORCH
    };
    char full[64];

    snprintf(full, sizeof full, "%s%s.weight", u->scope, name);
    x = network_builder_convolution(b, x, full, channels, window, &kernel);
    snprintf(full, sizeof full, "%s%s", u->scope, norm);
    return network_builder_batch_norm(b, x, full, &options);
}

/* As many zeros on each side as keep the size of the image, whatever the stride. */
static struct window around(int size, int stride)
{
    struct window w = window_valid(size, stride);

    w.top = w.bottom = w.left = w.right = (size - 1) / 2;
    return w;
}

static int add_unit(struct network_builder *b, int x, const struct residual_50 *of, int stage, int number)
{
    const int width = 64 << stage, stride = stage > 0 && number == 0 ? 2 : 1;
    const int first = of->stride_first ? stride : 1, second = of->stride_first ? 1 : stride;
    struct unit u = { .of = of };
    int shortcut = x, y;

    snprintf(u.scope, sizeof u.scope, "layer%d.%d.", stage + 1, number);
    y = normalized(b, x, &u, "conv1", "bn1", width, around(1, first), RELU);
    y = normalized(b, y, &u, "conv2", "bn2", width, around(3, second), RELU);
    y = normalized(b, y, &u, "conv3", "bn3", 4 * width, around(1, 1), RELU_NONE);
    if (number == 0)
        shortcut = normalized(b, x, &u, "downsample.0", "downsample.1", 4 * width, around(1, stride), RELU_NONE);
    return network_builder_relu(b, network_builder_add(b, y, shortcut));
}

void residual_50_build(struct network_builder *b, const struct residual_50 *r)
{
    const struct unit first = { .of = r };
    int x = normalized(b, network_builder_images(b), &first, "conv1", "bn1", 64, around(7, 2), RELU);

    x = network_builder_max_pool(b, x, r->pool);
    for (int stage = 0; stage < STAGES; stage++)
        for (int number = 0; number < units[stage]; number++)
            x = add_unit(b, x, r, stage, number);
    x = network_builder_global_average_pool(b, x);
    x = network_builder_dense(b, x, "fc.weight", CLASSES, &r->head);
    x = network_builder_bias_drawn(b, x, "fc.bias", &r->bias, RELU_NONE);
    network_builder_cross_entropy(b, x);
}
