/* ResNet-32 as tensorflow/models research/resnet trains it. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_resnet32 = {
    .model = "resnet32",
    .transform = "cifar-resnet-train",
    .optimizer = "momentum",
    .learning_rate = 0.1,
    .momentum = 0.9,
    /* the hook of the original */
    .schedule = { .drops = 3, .at = { 40000, 60000, 80000 }, .factors = { 0.1, 0.01, 0.001 } },
    .batch_size = 128,
};
