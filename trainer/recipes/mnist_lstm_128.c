/* The LSTM of 128 units as the public example trains it. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_mnist_lstm_128 = {
    .model = "mnist_lstm_128",
    .optimizer = "sgd",
    .learning_rate = 0.001,
    .batch_size = 128,
    .hold_out = 5000,
};
