/*
 * ResNet-50 on ImageNet, of 1,281,167 images, with the rate of TensorFlow's benchmarks: 0.128 for each 256 images of
 * a step, here 128. An epoch is 10,009 steps then. Several workers want --scale-learning-rate.
 */
#include "trainer/recipes/recipe.h"

enum { EPOCH = 10009 };

const struct recipe recipe_resnet50 = {
    .model = "resnet50",
    .transform = "imagenet-train",
    .optimizer = "momentum",
    .learning_rate = 0.064,
    .momentum = 0.9,
    .schedule = { .drops = 4,
                  .at = { 30 * EPOCH, 60 * EPOCH, 80 * EPOCH, 90 * EPOCH },
                  .factors = { 0.1, 0.01, 0.001, 0.0001 } },
    .warmup = 5 * EPOCH,
    .batch_size = 128,
};
