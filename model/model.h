/*
 * model.h - the table of models: the input of each, how its layers are put together, and what it is scored by. How a
 * model is trained is in model/file/recipe.h. One file per model in model/models/, and one row in models.h. Facts:
 * the specification of the seed models.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/error.h"
#include "base/batch.h"

struct model_file;      /* file/model_file.h */
struct network_builder; /* network_builder.h: what `build` calls, layer by layer */

/* Of what convolutions and larger matrix products multiply. With bfloat16 that is rounded; weights, sums, statistics,
 * losses and all other layers stay in float32. Where the processor cannot, networks compute in float32
 * (network_precision()). */
enum precision { PRECISION_FLOAT32, PRECISION_BFLOAT16 };

struct model {
    const char *name;
    int height, width, channels, classes; /* of the input the network is fed, and its logits */
    int labels;                           /* of a sample, for each a row of logits; 0: 1 */
    int integers;                         /* 1: the input is integers of any width, such as tokens */
    int features;                         /* of integers: numbers of FIELD_FEATURES beside them; 0: none */
    const char *transform;                /* for images that are not augmented: a name in dataset/transform.h; NULL for
                                             integers */
    int moving_averages;     /* 1: evaluated with moving averages of its weights if a checkpoint has them */
    int ties_are_correct;    /* 1: correct if no logit is above the label's (tutorial); 0: argmax, lowest */
    double statistics_decay; /* of batch-norm moving statistics; 0 without batch norm */
    int (*build)(struct network_builder *b, struct error *e);
    const char *frozen; /* scopes whose variables are not trained, separated by commas (model_in_scope()); NULL:
                                      none. Their batch norms use the moving statistics, which stay */
    const struct model_file *file; /* what `build` reads; NULL: a built-in model */
    enum precision precision;
};

static inline int model_labels(const struct model *m)
{
    return m->labels ? m->labels : 1;
}

/* 1: the variable is in one of the scopes "A,B,...": its name is a scope, or begins with it and '/' or '.'. scopes
 * NULL: 0. */
int model_in_scope(const char *scopes, const char *variable);

/* FIELD_INPUT for `count` samples; input (count, height, width, channels) of type real, or int32_t for models that read
 * integers, is borrowed. */
struct field model_input(const struct model *m, const void *input, int count);

/* Returns NULL if unknown. names: all, NULL at the end. */
const struct model *model_find(const char *name);
const char *const *model_names(void);

#endif
