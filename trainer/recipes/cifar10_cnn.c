/* The CNN as TensorFlow's CIFAR-10 tutorial trains it. */
#include "trainer/recipes/recipe.h"

#include <math.h>

/* A tenth every int(50000 / 128 * 350) steps. */
static double cifar10_cnn_schedule(double base, int64_t step)
{
    return base * pow(0.1, (double)(step / 136718));
}

const struct recipe recipe_cifar10_cnn = {
    .model = "cifar10_cnn",
    .transform = "cifar-tutorial-train",
    .optimizer = "sgd",
    .learning_rate = 0.1,
    .momentum = 0.9,
    .schedule = cifar10_cnn_schedule,
    .batch_size = 128,
    .moving_average = 0.9999,
    .loss_average = 0.9,
};
