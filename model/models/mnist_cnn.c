/*
 * The CNN of the notebook on training with several GPUs: six convolutions of 128 channels with max pools after every
 * second one, and a dense layer; 14 variables, 1,014,922 parameters. Glorot uniform initial values, biases 0.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

#include <stdio.h>

enum { CHANNELS = 128, CLASSES = 10 };

static int mnist_cnn_convolution(struct network_builder *b, int x, const char *scope, int size)
{
    const struct kernel_options glorot = { INITIAL_GLOROT, 0, 0 };
    char weights[32], biases[32];

    snprintf(weights, sizeof weights, "%s/weights", scope);
    snprintf(biases, sizeof biases, "%s/biases", scope);
    x = network_builder_convolution(b, x, weights, CHANNELS, window_same(size, 1), &glorot);
    return network_builder_bias(b, x, biases, 0, RELU);
}

static int mnist_cnn_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options glorot = { INITIAL_GLOROT, 0, 0 };
    int x = network_builder_images(b);

    (void)e;
    x = mnist_cnn_convolution(b, x, "Conv", 5);
    x = mnist_cnn_convolution(b, x, "Conv_1", 5);
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = mnist_cnn_convolution(b, x, "Conv_2", 3);
    x = mnist_cnn_convolution(b, x, "Conv_3", 3);
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = mnist_cnn_convolution(b, x, "Conv_4", 3);
    x = mnist_cnn_convolution(b, x, "Conv_5", 3);
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = network_builder_dense(b, x, "fully_connected/weights", CLASSES, &glorot);
    x = network_builder_bias(b, x, "fully_connected/biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_mnist_cnn = {
    .name = "mnist_cnn",
    .height = 28,
    .width = 28,
    .channels = 1,
    .classes = CLASSES,
    .transform = "unit",
    .build = mnist_cnn_build,
};
