/*
 * The neural language model of Bengio et al. 2003 ("A neural probabilistic language model", without direct connections
 * from input to output): five words tell the next one. Each becomes a row of a table (10,000, 64); the five rows side
 * by side go through 128 hidden units, with ReLU in place of tanh, to the logits of the 10,000 words: 1,971,088
 * parameters. Weight decay 1e-5 on all but the table and the biases. The sizes are those of dataset/text.c.
 */
#include "model/models/models.h"

#include "model/network_builder.h"

enum { WORDS = 10000, CONTEXT = 5, WIDTH = 64, HIDDEN = 128 };

static int next_word_build(struct network_builder *b, struct error *e)
{
    const struct kernel_options table = { INITIAL_UNIFORM, 0.1, 0 };
    const struct kernel_options hidden = { INITIAL_GLOROT, 0, 1e-5 }, logits = hidden;
    int x = network_builder_embedding(b, network_builder_images(b), "embedding/map", WORDS, WIDTH, &table);

    (void)e;
    x = network_builder_dense(b, x, "hidden/weights", HIDDEN, &hidden);
    x = network_builder_bias(b, x, "hidden/biases", 0, RELU);
    x = network_builder_dense(b, x, "logits/weights", WORDS, &logits);
    x = network_builder_bias(b, x, "logits/biases", 0, RELU_NONE);
    network_builder_cross_entropy(b, x);
    return OK;
}

const struct model model_next_word = {
    .name = "next_word",
    .height = 1,
    .width = CONTEXT,
    .channels = 1,
    .classes = WORDS,
    .integers = 1,
    .build = next_word_build,
};
