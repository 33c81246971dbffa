/* The CNN as TensorFlow's CIFAR-10 tutorial trains it. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_cifar10_cnn = {
    .model = "cifar10_cnn",
    .transform = "cifar-tutorial-train",
    .optimizer = "sgd",
    .learning_rate = 0.1,
    .momentum = 0.9,
    .schedule = { .every = 136718, .factor = 0.1 }, /* int(50000 / 128 * 350) steps */
    .batch_size = 128,
    .moving_average = 0.9999,
    .loss_average = 0.9,
};
