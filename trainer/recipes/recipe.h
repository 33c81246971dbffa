/*
 * recipe.h - how a model is trained unless the command line says otherwise: augmentation, batch, optimizer, schedule,
 * averages. One file per recipe, one row here. Facts: the specification of the seed models.
 */
#ifndef TRAINER_RECIPES_RECIPE_H
#define TRAINER_RECIPES_RECIPE_H

#include <stdint.h>

struct recipe {
    const char *model;
    const char *transform; /* of training, a name in dataset/transform.h; NULL: the model's own */
    const char *optimizer; /* a name in optimizers/optimizer_rule.h */
    double learning_rate, momentum;
    /* The learning rate of global step t (the number of updates applied before it) for a base rate; NULL: the base. */
    double (*schedule)(double base, int64_t step);
    int batch_size;        /* per worker */
    int hold_out;          /* the first training samples, which it is not trained on (0: none); TensorFlow's 5,000 */
    uint64_t seed;         /* 0: 1 */
    double moving_average; /* decay of moving averages of the variables (0: none); the tutorial's 0.9999 */
    double loss_average;   /* decay of moving averages of the losses (0: none); the tutorial's 0.9 */
};

#define RECIPES(ROW) \
    ROW(lenet) \
    ROW(cifar10_cnn) \
    ROW(resnet32) \
    ROW(next_word) \
    ROW(mnist_cnn) \
    ROW(mnist_lstm)

#define RECIPE_DECLARATION(name) extern const struct recipe recipe_##name;
RECIPES(RECIPE_DECLARATION)

/* The model's recipe; without one, the default: momentum at a low rate, images as in evaluation. */
const struct recipe *recipe_find(const char *model);

#endif
