/* The CNN of MNIST as its notebook trains it: all devices together take 1024 images a step, of 55,000. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_mnist_cnn = {
    .model = "mnist_cnn",
    .optimizer = "adam",
    .learning_rate = 0.001,
    .batch_size = 1024,
    .seed = 777,
    .hold_out = 5000,
};
