/*
 * recipe.h - how built-in models are trained (model/file/recipe.h says what a recipe has). One file per recipe, one row
 * here. Facts: the specification of the seed models.
 */
#ifndef TRAINER_RECIPES_RECIPE_H
#define TRAINER_RECIPES_RECIPE_H

#include "model/file/recipe.h"

#define RECIPES(ROW) \
    ROW(lenet) \
    ROW(cifar10_cnn) \
    ROW(resnet32) \
    ROW(next_word) \
    ROW(mnist_cnn) \
    ROW(mnist_lstm) \
    ROW(mnist_lstm_128) \
    ROW(language_model) \
    ROW(resnet50) \
    ROW(resnet50b) \
    ROW(resnet50_torchvision) \
    ROW(show_and_tell)

#define RECIPE_DECLARATION(name) extern const struct recipe recipe_##name;
RECIPES(RECIPE_DECLARATION)

/* The model's recipe; without one, the default: momentum at a low rate, images as in evaluation. */
const struct recipe *recipe_find(const char *model);

#endif
