/*
 * mnist_cnn.h - the CNN of the notebook on training with several GPUs: 6 convolutions and a dense layer, 14 variables,
 * 1,014,922 parameters. Its copies at the start are counted: 14 variables with two slots of adam each make 42 for each
 * replica after the first.
 */
#ifndef TESTS_TRAINER_MNIST_CNN_H
#define TESTS_TRAINER_MNIST_CNN_H

#include "model/model.h"
#include "model/network_builder.h"

#include <math.h>

static int mnist_cnn_convolution(struct network_builder *b, int x, int size, int in, const char *weights,
                                 const char *biases)
{
    const struct kernel_options kernel = { INITIAL_UNIFORM, sqrt(6.0 / (size * size * (in + 128))), 0 };

    x = network_builder_convolution(b, x, weights, 128, window_same(size, 1), &kernel);
    return network_builder_bias(b, x, biases, 0, RELU);
}

static int mnist_cnn_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options dense = { INITIAL_UNIFORM, sqrt(6.0 / (1152 + 10)), 0 };
    int x = network_builder_images(b);

    (void)e;
    x = mnist_cnn_convolution(b, x, 5, 1, "Conv/weights", "Conv/biases");
    x = mnist_cnn_convolution(b, x, 5, 128, "Conv_1/weights", "Conv_1/biases");
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = mnist_cnn_convolution(b, x, 3, 128, "Conv_2/weights", "Conv_2/biases");
    x = mnist_cnn_convolution(b, x, 3, 128, "Conv_3/weights", "Conv_3/biases");
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = mnist_cnn_convolution(b, x, 3, 128, "Conv_4/weights", "Conv_4/biases");
    x = mnist_cnn_convolution(b, x, 3, 128, "Conv_5/weights", "Conv_5/biases");
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = network_builder_dense(b, x, "fully_connected/weights", 10, &dense);
    x = network_builder_bias(b, x, "fully_connected/biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

static const struct model mnist_cnn = {
    .name = "mnist_cnn",
    .height = 28,
    .width = 28,
    .channels = 1,
    .classes = 10,
    .transform = "unit",
    .build = mnist_cnn_build,
};

#endif
