/*
 * ResNet-32 of tensorflow/models research/resnet: pre-activation residual units with 16, 32 and 64 channels, 464,154
 * parameters and 2,272 moving statistics. Leaky ReLU of slope 0.1 as where(x < 0, 0.1 x, x), shortcuts by average pool
 * and channels of zeros, zero-debiased moving statistics of the biased variance.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

#include <stdio.h>

enum { UNITS = 5, STAGES = 3 };
static const double epsilon = 0.001, slope = 0.1, decay = 0.0002;

static int convolution(struct network_builder *b, int x, const char *scope, const char *name, int channels, int stride)
{
    const struct kernel_options kernel = { INITIAL_HE_FAN_OUT, 0, decay };
    char full[128];

    snprintf(full, sizeof full, "%s/%s/DW", scope, name);
    return network_builder_convolution(b, x, full, channels, window_same(3, stride), &kernel);
}

static int activation(struct network_builder *b, int x, const char *scope, const char *name)
{
    const struct batch_norm_options options = { .epsilon = epsilon, .slope = slope, .debias = 1 };
    char full[128];

    snprintf(full, sizeof full, "%s/%s", scope, name);
    return network_builder_batch_norm(b, x, full, &options);
}

static int unit(struct network_builder *b, int x, int stage, int number, int channels)
{
    const int shared = stage == 1 && number == 0, wider = stage > 1 && number == 0, stride = wider ? 2 : 1;
    char scope[32];
    int shortcut, y;

    snprintf(scope, sizeof scope, "unit_%d_%d", stage, number);
    y = activation(b, x, scope, shared ? "shared_activation/init_bn" : "residual_only_activation/init_bn");
    shortcut = shared ? y : x;
    if (wider) {
        shortcut = network_builder_average_pool(b, shortcut, window_valid(2, 2));
        shortcut = network_builder_widen(b, shortcut, channels);
    }
    y = convolution(b, y, scope, "sub1/conv1", channels, stride);
    y = activation(b, y, scope, "sub2/bn2");
    y = convolution(b, y, scope, "sub2/conv2", channels, 1);
    return network_builder_add(b, y, shortcut);
}

static int resnet32_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options logit = { INITIAL_UNIT_SCALING, 0, decay };
    int x = network_builder_images(b);

    (void)e;
    x = convolution(b, x, "init", "init_conv", 16, 1);
    for (int stage = 1; stage <= STAGES; stage++)
        for (int number = 0; number < UNITS; number++)
            x = unit(b, x, stage, number, 8 << stage);
    x = activation(b, x, "unit_last", "final_bn");
    x = network_builder_average_pool(b, x, window_valid(8, 8));
    x = network_builder_dense(b, x, "logit/DW", 10, &logit);
    x = network_builder_bias(b, x, "logit/biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_resnet32 = {
    .name = "resnet32",
    .height = 32,
    .width = 32,
    .channels = 3,
    .classes = 10,
    .transform = "cifar-resnet-eval",
    .statistics_decay = 0.9,
    .build = resnet32_build,
};
