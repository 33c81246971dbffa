#include "model/file/recipe.h"

#include <string.h>

#include <math.h>

double rate_curve_rate(const struct rate_curve *c, double base, int64_t step)
{
    int k = c->drops;

    if (c->every > 0)
        return base * pow(c->factor, (double)(step / c->every));
    while (k > 0 && c->at[k - 1] > step)
        k--;
    return k ? base * c->factors[k - 1] : base;
}

/*
 * ResNet-50 on ImageNet, of 1,281,167 images, with the rate of TensorFlow's benchmarks: 0.128 for each 256 images
 * of a step, here 128. An epoch is 10,009 steps then. Several workers want --scale-learning-rate.
 */
#define RESNET_50 \
    .transform = "imagenet-train", .optimizer = "momentum", .learning_rate = 0.064, .momentum = 0.9, \
    .schedule = { .drops = 4, \
                  .at = { 30 * 10009, 60 * 10009, 80 * 10009, 90 * 10009 }, \
                  .factors = { 0.1, 0.01, 0.001, 0.0001 } }, \
    .warmup = 5 * 10009, .batch_size = 128

/* Facts: the specification of the seed models. */
static const struct recipe recipes[] = {
    /* LeNet as the course skeleton trains it. */
    { .model = "lenet",
      .transform = "unit",
      .optimizer = "momentum",
      .learning_rate = 0.05,
      .momentum = 0.9,
      .batch_size = 128 },
    /* The CNN as TensorFlow's CIFAR-10 tutorial trains it. */
    { .model = "cifar10_cnn",
      .transform = "cifar-tutorial-train",
      .optimizer = "sgd",
      .learning_rate = 0.1,
      .momentum = 0.9,
      .schedule = { .every = 136718, .factor = 0.1 }, /* int(50000 / 128 * 350) steps */
      .batch_size = 128,
      .moving_average = 0.9999,
      .loss_average = 0.9 },
    /* ResNet-32 as tensorflow/models research/resnet trains it. */
    { .model = "resnet32",
      .transform = "cifar-resnet-train",
      .optimizer = "momentum",
      .learning_rate = 0.1,
      .momentum = 0.9,
      /* the hook of the original */
      .schedule = { .drops = 3, .at = { 40000, 60000, 80000 }, .factors = { 0.1, 0.01, 0.001 } },
      .batch_size = 128 },
    /* The next word: Adagrad, whose rates rare words keep high (Duchi et al. 2011). */
    { .model = "next_word", .optimizer = "adagrad", .learning_rate = 1.0, .momentum = 0.9, .batch_size = 128 },
    /* The CNN of MNIST as its notebook trains it: all devices together take 1024 images a step, of 55,000. */
    { .model = "mnist_cnn",
      .optimizer = "adam",
      .learning_rate = 0.001,
      .batch_size = 1024,
      .seed = 777,
      .hold_out = 5000 },
    /* The LSTM of MNIST as the homework trains it: each worker takes 32 images a step, of 55,000. */
    { .model = "mnist_lstm", .optimizer = "adam", .learning_rate = 0.001, .batch_size = 32, .hold_out = 5000 },
    /* The LSTM of 128 units as the public example trains it. */
    { .model = "mnist_lstm_128", .optimizer = "sgd", .learning_rate = 0.001, .batch_size = 128, .hold_out = 5000 },
    /* The language model: 640 words a step; Adagrad, whose rates rare words keep high (Duchi et al. 2011). */
    { .model = "language_model", .optimizer = "adagrad", .learning_rate = 0.5, .batch_size = 32 },
    { .model = "resnet50", RESNET_50 },
    { .model = "resnet50b", RESNET_50 },
    /*
     * ResNet-50 on ImageNet, of 1,281,167 images, as torchvision's first weights were trained: 32 images a worker, at a
     * rate of 0.1 for eight workers, who want --scale-learning-rate. An epoch is 5,004 of their steps.
     */
    { .model = "resnet50_torchvision",
      .transform = "imagenet-train",
      .optimizer = "momentum",
      .learning_rate = 0.0125,
      .momentum = 0.9,
      .schedule = { .drops = 2, .at = { 30 * 5004, 60 * 5004 }, .factors = { 0.1, 0.01 } },
      .batch_size = 32 },
    /* Show and Tell as im2txt trains its decoder: 32 sentences a step; a rate that halves every 8 epochs of COCO. */
    { .model = "show_and_tell",
      .optimizer = "sgd",
      .learning_rate = 2.0,
      .schedule = { .every = 146590, .factor = 0.5 },
      .clip_norm = 5.0,
      .batch_size = 32 },
};

static const struct recipe usual = {
    .optimizer = "momentum", .learning_rate = 0.01, .momentum = 0.9, .batch_size = 128
};

const struct recipe *recipe_find(const char *model)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (!strcmp(recipes[i].model, model))
            return &recipes[i];
    return &usual;
}
