/*
 * Show and Tell (Vinyals et al. 2015), the decoder of TensorFlow's im2txt: 2,048 features of an image, as a frozen
 * Inception v3 gives them, tell a sentence word by word. The features become the first of the vectors that a long
 * short-term memory of 512 units reads, and each word a row of a table (12,000, 512); what the memory gives after each
 * word is turned into the logits of the next one. It has 15,447,776 parameters. Initial values are uniform within 0.08,
 * biases are 0, and 1 is added to the forget gate. In training, 0.7 of what the memory reads and gives is kept.
 * Specification of the seed models, section 6. Longer sentences are cut: 20 words are the longest that im2txt tells.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

enum { FEATURES = 2048, WORDS = 12000, STEPS = 20, UNITS = 512 };

static int show_and_tell_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options uniform = { INITIAL_UNIFORM, 0.08, 0 };
    const int input = network_builder_images(b);
    int parts[2], x;

    (void)e;
    parts[0] = network_builder_dense(b, network_builder_image_features(b, input), "image_embedding/weights", UNITS,
                                     &uniform);
    parts[1] = network_builder_embedding(b, input, "seq_embedding/map", WORDS, UNITS, &uniform);
    x = network_builder_dropout(b, network_builder_stack(b, parts, 2), 0.7);
    x = network_builder_lstm(b, x, "lstm/basic_lstm_cell", UNITS, LSTM_GIVES_LATER, 1, &uniform);
    x = network_builder_dropout(b, x, 0.7);
    x = network_builder_dense_each(b, x, "logits/weights", WORDS, &uniform);
    x = network_builder_bias(b, x, "logits/biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_show_and_tell = {
    .name = "show_and_tell",
    .height = STEPS,
    .width = 1,
    .channels = 1,
    .classes = WORDS,
    .labels = STEPS,
    .features = FEATURES,
    .integers = 1,
    .build = show_and_tell_build,
};
