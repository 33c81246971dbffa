/*
 * optimizer_rule.h - the table of optimizers: what one update does with a variable's elements. An optimizer is one
 * file of this folder with a struct optimizer_rule, and one row below: --optimizer, --help, names in checkpoints and
 * how much is kept beside the weights come from there. Pure functions, exactly as TensorFlow 1 defines them
 * (specification of the seed models, section 8).
 */
#ifndef TRAINER_OPTIMIZERS_OPTIMIZER_RULE_H
#define TRAINER_OPTIMIZERS_OPTIMIZER_RULE_H

#include "model/real.h"

#include <stddef.h>

/* of one update, the same for all elements of a variable */
struct optimizer_step {
    real scale;      /* multiplies sums: 1 / weight of the samples */
    float decay;     /* of the weights */
    real clip;       /* multiplies gradients: 1, or less to limit their norm */
    double rate;     /* the learning rate */
    double momentum; /* as requested */
    double updates;  /* of the slots so far, this one included */
};

struct optimizer_rule {
    const char *slots[2]; /* what is kept of each weight: the end of its name in checkpoints; NULL: nothing */
    real initial;         /* of every element of the first slot in a new run; the second begins with 0 */
    int all_rows;         /* 1: rows of a table without a gradient are updated, too: their moments decay */
    int still;            /* 1: a weight whose gradient is 0, and its slots, do not change */
    double beta1, beta2;  /* whose powers checkpoints hold; 0: none */
    /* Updates `count` weights w and their slots (NULL: not kept) by the sums of their gradients. */
    void (*update)(struct optimizer_step s, const real *sum, real *w, real *first, real *second, size_t count);
};

/* Sum to gradient: the weighted mean over the update's samples, and weight decay's part; both clipped. */
static inline real optimizer_gradient(const struct optimizer_step *s, real sum, real weight)
{
    return (sum * s->scale + (real)s->decay * weight) * s->clip;
}

/* The table: ROW(the end of its constant in enum optimizer_kind; its name, also in its file's name and in
 * optimizer_rule_NAME). Ranks compare the constants. */
#define OPTIMIZERS(ROW) \
    ROW(SGD, sgd) \
    ROW(MOMENTUM, momentum) \
    ROW(ADAM, adam) \
    ROW(ADAGRAD, adagrad) \
    ROW(LAZY_ADAM, lazy_adam)

#define OPTIMIZER_RULE_DECLARATION(place, name) extern const struct optimizer_rule optimizer_rule_##name;
OPTIMIZERS(OPTIMIZER_RULE_DECLARATION)
#undef OPTIMIZER_RULE_DECLARATION

#endif
