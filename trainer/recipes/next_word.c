/* The next word: Adagrad, whose rates rare words keep high (Duchi et al. 2011). */
#include "trainer/recipes/recipe.h"

const struct recipe recipe_next_word = {
    .model = "next_word",
    .optimizer = "adagrad",
    .learning_rate = 1.0,
    .momentum = 0.9,
    .batch_size = 128,
};
