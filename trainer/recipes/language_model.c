/* The language model: 640 words a step; Adagrad, whose rates rare words keep high (Duchi et al. 2011). */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_language_model = {
    .model = "language_model",
    .optimizer = "adagrad",
    .learning_rate = 0.5,
    .batch_size = 32,
};
