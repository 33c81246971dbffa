/*
 * ResNet-50 on ImageNet, of 1,281,167 images, as torchvision's first weights were trained: 32 images a worker, at a
 * rate of 0.1 for eight workers, who want --scale-learning-rate. An epoch is 5,004 of their steps.
 */
#include "trainer/recipes/recipe.h"

enum { EPOCH = 5004 };

const struct recipe recipe_resnet50_torchvision = {
    .model = "resnet50_torchvision",
    .transform = "imagenet-train",
    .optimizer = "momentum",
    .learning_rate = 0.0125,
    .momentum = 0.9,
    .schedule = { .drops = 2, .at = { 30 * EPOCH, 60 * EPOCH }, .factors = { 0.1, 0.01 } },
    .batch_size = 32,
};
