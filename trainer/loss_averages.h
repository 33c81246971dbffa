/*
 * loss_averages.h - moving averages of the losses, for models whose reference saves them in its checkpoints (recipe.h,
 * loss_average): TensorFlow's CIFAR-10 tutorial restores them with everything else, so its graph can only resume a
 * checkpoint that has them. Nothing is computed from them. Names and arithmetic are the tutorial's: a changes by (1 -
 * decay) (a - loss), in float32 from 0, with the losses of the weights before the update:
 *
 *   cross_entropy/avg              the batch's mean
 *   <scope>/weight_loss/avg        decay/2 |w|^2 of each variable SCOPE/... with weight decay
 *   total_loss/avg                 the sum of all these
 */
#ifndef TRAINER_LOSS_AVERAGES_H
#define TRAINER_LOSS_AVERAGES_H

#include "base/error.h"
#include "model/network.h"

#include <stddef.h>

struct loss_average {
    char name[160];                  /* in the checkpoint */
    const struct variable *variable; /* of the weight decay; NULL: the cross entropy, or the sum of all */
    double loss;                     /* of the current step */
    float value;
};

struct loss_averages {
    struct loss_average *items; /* cross entropy first, the sum last; none for models without them */
    size_t count;
    double decay;
};

/* Sets all to 0. decay 0: no averages. On OK loss_averages_release() it; the network must live as long. */
int loss_averages_init(struct loss_averages *a, const struct network *n, double decay, struct error *e);
void loss_averages_release(struct loss_averages *a); /* all zero is fine */

/* Before a step: computes the losses of weight decay, and returns their sum, which is network_decay_loss(). */
double loss_averages_before(struct loss_averages *a, const struct network *n);
/* After the step was applied; cross_entropy is the mean over its samples. */
void loss_averages_after(struct loss_averages *a, double cross_entropy);

#endif
