/* ResNet-32 as tensorflow/models research/resnet trains it. */
#include "trainer/recipes/recipe.h"

/* The hook of the original: a tenth below 40k, 60k and 80k updates, and after. */
static double resnet32_schedule(double base, int64_t step)
{
    return step < 40000 ? base : step < 60000 ? base * 0.1 : step < 80000 ? base * 0.01 : base * 0.001;
}

const struct recipe recipe_resnet32 = {
    .model = "resnet32",
    .transform = "cifar-resnet-train",
    .optimizer = "momentum",
    .learning_rate = 0.1,
    .momentum = 0.9,
    .schedule = resnet32_schedule,
    .batch_size = 128,
};
