/*
 * The LeNet of the course skeleton: two convolutions with max pools, two dense layers, 21,840 parameters. Weight decay
 * 1e-4 on all weights, Glorot uniform initial values, biases 0, dropout keeps half of fc3.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

static int lenet_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options glorot = { INITIAL_GLOROT, 0, 1e-4 };
    int x = network_builder_images(b);

    (void)e;
    x = network_builder_convolution(b, x, "conv1/weights", 10, window_valid(5, 1), &glorot);
    x = network_builder_bias(b, x, "conv1/biases", 0, RELU);
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = network_builder_convolution(b, x, "conv2/weights", 20, window_valid(5, 1), &glorot);
    x = network_builder_bias(b, x, "conv2/biases", 0, RELU);
    x = network_builder_max_pool(b, x, window_valid(2, 2));
    x = network_builder_dense(b, x, "fc3/weights", 50, &glorot);
    x = network_builder_bias(b, x, "fc3/biases", 0, RELU);
    x = network_builder_dropout(b, x, 0.5);
    x = network_builder_dense(b, x, "fc4/weights", 10, &glorot);
    x = network_builder_bias(b, x, "fc4/biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_lenet = {
    .name = "lenet",
    .height = 28,
    .width = 28,
    .channels = 1,
    .classes = 10,
    .transform = "unit",
    .build = lenet_build,
};
