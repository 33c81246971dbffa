/*
 * model.h - the table of models: what each is fed, how it is trained by default, and how its layers are put together.
 * One file a model in model/models/; add it to the table in model.c. Facts: the specification of the seed models.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/error.h"

#include <stdint.h>

struct network_builder; /* network_builder.h: what `build` calls, layer by layer */

struct model {
    const char *name, *summary;
    int height, width, channels, classes;              /* of the input the network is fed, and its logits */
    const char *train_transform, *evaluation_transform; /* names in dataset/transform.h */
    const char *optimizer;                              /* "sgd", "momentum" or "adam": the default */
    double learning_rate, momentum;                     /* defaults */
    /* The learning rate of global step t (the number of updates applied before it) for a base rate. */
    double (*schedule)(double base, int64_t step);
    int batch_size;                 /* default, a worker */
    double moving_average;          /* decay of moving averages of the variables (0: none); the tutorial's 0.9999 */
    double loss_average;            /* decay of moving averages of the losses (0: none); the tutorial's 0.9 */
    int ties_are_correct;           /* 1: right where no logit is above the label's (tutorial); 0: argmax, lowest */
    double statistics_decay;        /* of batch-norm moving statistics; 0 without batch norm */
    int (*build)(struct network_builder *b, struct error *e);
};

/* NULL: unknown. names: all, NULL at the end. */
const struct model *model_find(const char *name);
const char *const *model_names(void);

#endif
