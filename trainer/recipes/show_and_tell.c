/* Show and Tell as im2txt trains its decoder: 32 sentences a step, and a rate that halves every 8 epochs of COCO. */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_show_and_tell = {
    .model = "show_and_tell",
    .optimizer = "sgd",
    .learning_rate = 2.0,
    .schedule = { .every = 146590, .factor = 0.5 },
    .clip_norm = 5.0,
    .batch_size = 32,
};
