/*
 * The LSTM of the RNN homework on MNIST: an image is read row by row, 28 steps of 28 pixels, by 64 units; what the last
 * step gives goes through a dense layer. 24,458 parameters in TensorFlow's names. Glorot uniform initial values, biases
 * 0; 1 is added to the forget gate.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

enum { ROWS = 28, PIXELS = 28, UNITS = 64, CLASSES = 10 };

static int mnist_lstm_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options glorot = { INITIAL_GLOROT, 0, 0 };
    int x = network_builder_images(b);

    (void)e;
    x = network_builder_lstm(b, x, "rnn/lstm_cell", UNITS, LSTM_GIVES_LAST, 1, &glorot);
    x = network_builder_dense(b, x, "dense/kernel", CLASSES, &glorot);
    x = network_builder_bias(b, x, "dense/bias", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_mnist_lstm = {
    .name = "mnist_lstm",
    .height = ROWS,
    .width = PIXELS,
    .channels = 1,
    .classes = CLASSES,
    .transform = "unit",
    .build = mnist_lstm_build,
};
