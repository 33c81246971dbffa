/* LeNet as the course skeleton trains it. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_lenet = {
    .model = "lenet",
    .transform = "unit",
    .optimizer = "momentum",
    .learning_rate = 0.05,
    .momentum = 0.9,
    .batch_size = 128,
};
