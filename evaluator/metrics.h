/*
 * metrics.h - what one evaluation adds up: counts are integers and the loss is summed in double in the order of the
 * examples, so the result does not depend on how the examples were cut into batches.
 */
#ifndef EVALUATOR_METRICS_H
#define EVALUATOR_METRICS_H

#include <stdint.h>

struct metrics {
    int64_t examples, correct;
    double cross_entropy; /* sum over the examples */
    double decay_loss;    /* weight decay's part of the loss; not summed */
};

void metrics_init(struct metrics *m, double decay_loss);
/* One batch: its examples, how many of them were right, and the sum of their cross entropies. */
void metrics_add(struct metrics *m, int64_t examples, int64_t correct, double cross_entropy);

double metrics_precision(const struct metrics *m);          /* correct / examples; NaN without examples */
double metrics_mean_cross_entropy(const struct metrics *m); /* NaN without examples */
double metrics_loss(const struct metrics *m);               /* mean cross entropy + decay loss, as trainers log it */

#endif
