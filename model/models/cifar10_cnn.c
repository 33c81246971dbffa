/*
 * The CNN of TensorFlow's CIFAR-10 tutorial: two 5x5 convolutions with local response normalisation, three dense
 * layers, 1,068,298 parameters. The first pool comes before its normalisation, the second after. Evaluation uses
 * moving averages of the variables.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

static struct kernel_options cifar10_cnn_kernel(double deviation, double decay)
{
    return (struct kernel_options){ INITIAL_TRUNCATED_NORMAL, deviation, decay };
}

static int normalize(struct network_builder *b, int x)
{
    return network_builder_lrn(b, x, 4, 1.0, 0.001 / 9, 0.75);
}

static int cifar10_cnn_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options convolution = cifar10_cnn_kernel(0.05, 0), local = cifar10_cnn_kernel(0.04, 0.004);
    const struct kernel_options last = cifar10_cnn_kernel(1 / 192.0, 0);
    int x = network_builder_images(b);

    (void)e;
    x = network_builder_convolution(b, x, "conv1/weights", 64, window_same(5, 1), &convolution);
    x = network_builder_bias(b, x, "conv1/biases", 0.0, RELU);
    x = network_builder_max_pool(b, x, window_same(3, 2));
    x = normalize(b, x);
    x = network_builder_convolution(b, x, "conv2/weights", 64, window_same(5, 1), &convolution);
    x = network_builder_bias(b, x, "conv2/biases", 0.1, RELU);
    x = normalize(b, x);
    x = network_builder_max_pool(b, x, window_same(3, 2));
    x = network_builder_dense(b, x, "local3/weights", 384, &local);
    x = network_builder_bias(b, x, "local3/biases", 0.1, RELU);
    x = network_builder_dense(b, x, "local4/weights", 192, &local);
    x = network_builder_bias(b, x, "local4/biases", 0.1, RELU);
    x = network_builder_dense(b, x, "softmax_linear/weights", 10, &last);
    x = network_builder_bias(b, x, "softmax_linear/biases", 0.0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_cifar10_cnn = {
    .name = "cifar10_cnn",
    .height = 24,
    .width = 24,
    .channels = 3,
    .classes = 10,
    .transform = "cifar-tutorial-eval",
    .moving_averages = 1,
    .ties_are_correct = 1,
    .build = cifar10_cnn_build,
};
