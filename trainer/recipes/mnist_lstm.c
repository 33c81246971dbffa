/* The LSTM of MNIST as the homework trains it: each worker takes 32 images a step, of 55,000. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_mnist_lstm = {
    .model = "mnist_lstm",
    .optimizer = "adam",
    .learning_rate = 0.001,
    .batch_size = 32,
    .hold_out = 5000,
};
