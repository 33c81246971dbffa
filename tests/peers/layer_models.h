/*
 * layer_models.h - two small models of layers that no built-in model has, so that TensorFlow judges these, too: of images,
 * and of sequences of words with a label and a weight for each word. seed_models.py builds the same.
 */
#ifndef TESTS_PEERS_LAYER_MODELS_H
#define TESTS_PEERS_LAYER_MODELS_H

#include "model/model.h"
#include "model/network_builder.h"

#include <string.h>

/* Rectangular windows, explicit padding, ReLU alone, batch norm without gamma and with the unbiased variance, values
 * side by side, the mean over all pixels, a bias that is drawn. */
static int layers_of_images_build(struct network_builder *b, struct error *e)
{
    static const struct kernel_options kernel = { INITIAL_NORMAL, 0.2, 0 };
    static const struct batch_norm_options bare = { .epsilon = 0.001, .slope = 1, .unbiased = 1, .leave_gamma = 1 };
    static const struct batch_norm_options fused = { .epsilon = 0.001, .slope = 1, .unbiased = 1 };
    static const struct window broad = { 1, 7, 1, 1, 0, 0, 0, 0, PADDING_SAME };
    static const struct window tall = { 5, 1, 2, 1, 2, 1, 0, 0, PADDING_EXPLICIT };
    static const struct window fixed = { 3, 3, 2, 2, 1, 1, 1, 1, PADDING_EXPLICIT };
    const int images = network_builder_images(b);
    int sides[2], x;

    (void)e;
    x = network_builder_convolution(b, images, "broad/weights", 16, broad, &kernel);
    x = network_builder_relu(b, network_builder_batch_norm(b, x, "broad/BatchNorm", &bare));
    sides[0] = network_builder_convolution(b, x, "fixed/weights", 8, fixed, &kernel);
    sides[0] = network_builder_batch_norm(b, sides[0], "fixed/BatchNorm", &fused);
    x = network_builder_convolution(b, x, "tall/weights", 16, tall, &kernel);
    x = network_builder_bias_drawn(b, x, "tall/biases", &kernel, RELU_NONE);
    sides[1] = network_builder_max_pool(b, network_builder_relu(b, x), (struct window){ 1, 2, 1, 2, 0, 0, 0, 0, 0 });
    x = network_builder_relu(b, network_builder_concat(b, sides, 2));
    x = network_builder_global_average_pool(b, x);
    x = network_builder_dense(b, x, "logits/weights", 10, &kernel);
    network_builder_cross_entropy(b, network_builder_bias(b, x, "logits/biases", 0, RELU_NONE));
    return OK;
}

static const struct model layers_of_images = {
    .name = "layers_of_images",
    .height = 10,
    .width = 8,
    .channels = 3,
    .classes = 10,
    .statistics_decay = 0.9,
    .build = layers_of_images_build,
};

/* An LSTM that hands every step to another one, whose steps have logits each. */
static int layers_of_words_build(struct network_builder *b, struct error *e)
{
    static const struct kernel_options kernel = { INITIAL_UNIFORM, 0.3, 0 };
    int x = network_builder_embedding(b, network_builder_images(b), "map", 50, 8, &kernel);

    (void)e;
    x = network_builder_lstm(b, x, "first", 12, LSTM_GIVES_EVERY, 1, &kernel);
    x = network_builder_lstm(b, x, "second", 7, LSTM_GIVES_EVERY, 1, &kernel);
    x = network_builder_dense_each(b, x, "logits/kernel", 50, &kernel);
    network_builder_cross_entropy(b, network_builder_bias(b, x, "logits/bias", 0, RELU_NONE));
    return OK;
}

static const struct model layers_of_words = {
    .name = "layers_of_words",
    .height = 6,
    .width = 1,
    .channels = 1,
    .classes = 50,
    .labels = 6,
    .integers = 1,
    .build = layers_of_words_build,
};

static inline const struct model *layer_model_find(const char *name)
{
    return !strcmp(name, layers_of_images.name)  ? &layers_of_images
           : !strcmp(name, layers_of_words.name) ? &layers_of_words
                                                 : model_find(name);
}

#endif
