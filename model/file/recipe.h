/*
 * recipe.h - how a model is trained unless the command line says otherwise, as data: augmentation, batch, optimizer,
 * schedule, averages. That of a built-in model is a row of recipe.c, that of a model file is in the file.
 */
#ifndef MODEL_FILE_RECIPE_H
#define MODEL_FILE_RECIPE_H

#include <stdint.h>

enum { RATE_DROPS_MAX = 32 };

/* The learning rate over the steps, as factors of the base rate. Zeroed: always the base rate. */
struct rate_curve {
    int64_t every; /* > 0: the rate is multiplied by `factor` at each multiple of it */
    double factor;
    int drops; /* else: from step at[k] on it is the base rate times factors[k] */
    int64_t at[RATE_DROPS_MAX];
    double factors[RATE_DROPS_MAX];
};

/* The learning rate of global step t (the number of updates applied before it) for a base rate. */
double rate_curve_rate(const struct rate_curve *c, double base, int64_t step);

struct recipe {
    const char *model;
    const char *transform; /* of training, a name in dataset/transform.h; NULL: the model's own */
    const char *optimizer; /* a name in optimizers/optimizer_rule.h */
    double learning_rate, momentum;
    struct rate_curve schedule;
    int64_t warmup;        /* updates */
    double clip_norm;      /* of the gradient; 0: it is not clipped */
    int batch_size;        /* per worker */
    int hold_out;          /* the first training samples, which it is not trained on (0: none); TensorFlow's 5,000 */
    uint64_t seed;         /* 0: 1 */
    double moving_average; /* decay of moving averages of the variables (0: none); the tutorial's 0.9999 */
    double loss_average;   /* decay of moving averages of the losses (0: none); the tutorial's 0.9 */
};

/* The built-in model's recipe; without one, the default: momentum at a low rate, images as in evaluation. */
const struct recipe *recipe_find(const char *model);

#endif
