/*
 * adam.h - Adam's update (Kingma and Ba 2015) as TensorFlow 1 makes it, for the optimizers that differ in the rows that
 * they update.
 */
#ifndef TRAINER_OPTIMIZERS_ADAM_H
#define TRAINER_OPTIMIZERS_ADAM_H

#include "trainer/optimizers/optimizer_rule.h"

#define ADAM_BETA1 0.9
#define ADAM_BETA2 0.999

/* As struct optimizer_rule. */
void adam_update(struct optimizer_step s, const real *sum, real *w, real *first, real *second, size_t count);

#endif
