/*
 * A recurrent language model: of 20 words that follow each other, each tells the next one, from itself and those before
 * it. A word becomes a row of a table (10,000, 200), and a long short-term memory of 200 units reads the rows; what it
 * gives at each step is turned into the logits of 10,000 words. It has 4,330,800 parameters, of which a step uses few
 * rows of the table. Initial values are uniform within 0.1, biases are 0, and 1 is added to the forget gate. The memory
 * is empty before the first of the 20 words. Sizes and the range of initial values are those of the small model of
 * Zaremba et al. 2014, "Recurrent neural network regularization", which has two such layers.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

enum { WORDS = 10000, STEPS = 20, UNITS = 200 };

static int language_model_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options uniform = { INITIAL_UNIFORM, 0.1, 0 };
    int x = network_builder_embedding(b, network_builder_images(b), "embedding/map", WORDS, UNITS, &uniform);

    (void)e;
    x = network_builder_lstm(b, x, "rnn/lstm_cell", UNITS, LSTM_GIVES_EVERY, 1, &uniform);
    x = network_builder_dense_each(b, x, "softmax/kernel", WORDS, &uniform);
    x = network_builder_bias(b, x, "softmax/bias", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_language_model = {
    .name = "language_model",
    .height = STEPS,
    .width = 1,
    .channels = 1,
    .classes = WORDS,
    .labels = STEPS,
    .integers = 1,
    .build = language_model_build,
};
