/*
 * The LSTM of the public example that the homework of mnist_lstm cites: the same net with 128 units, 81,674 parameters,
 * in the names of TensorFlow's BasicLSTMCell and of variables that have none. The output's weights and bias are drawn
 * from a normal distribution of deviation 1.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

enum { ROWS = 28, PIXELS = 28, UNITS = 128, CLASSES = 10 };

static int mnist_lstm_128_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options cell = { INITIAL_GLOROT, 0, 0 }, output = { INITIAL_NORMAL, 1, 0 };
    int x = network_builder_images(b);

    (void)e;
    x = network_builder_lstm(b, x, "rnn/basic_lstm_cell", UNITS, LSTM_GIVES_LAST, 1, &cell);
    x = network_builder_dense(b, x, "Variable", CLASSES, &output);
    x = network_builder_bias_drawn(b, x, "Variable_1", &output, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_mnist_lstm_128 = {
    .name = "mnist_lstm_128",
    .height = ROWS,
    .width = PIXELS,
    .channels = 1,
    .classes = CLASSES,
    .transform = "unit",
    .build = mnist_lstm_128_build,
};
