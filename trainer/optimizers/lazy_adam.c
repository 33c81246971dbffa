/*
 * lazy_adam.c - Adam that leaves rows without a gradient alone, as tf.contrib.opt.LazyAdamOptimizer. On dense variables
 * it is Adam.
 */
#include "trainer/optimizers/adam.h"

const struct optimizer_rule optimizer_rule_lazy_adam = {
    .slots = { "Adam", "Adam_1" },
    .beta1 = ADAM_BETA1,
    .beta2 = ADAM_BETA2,
    .update = adam_update,
};
