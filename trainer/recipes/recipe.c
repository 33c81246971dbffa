#include "trainer/recipes/recipe.h"

#include <string.h>

#define RECIPE_ADDRESS(name) &recipe_##name,
static const struct recipe *const recipes[] = { RECIPES(RECIPE_ADDRESS) };

static const struct recipe usual = {
    .optimizer = "momentum", .learning_rate = 0.01, .momentum = 0.9, .batch_size = 128
};

const struct recipe *recipe_find(const char *model)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (!strcmp(recipes[i]->model, model))
            return recipes[i];
    return &usual;
}
