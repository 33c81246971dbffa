/* curves.h - the numbers behind a precision-recall curve of each class against all others. */
#ifndef EVALUATOR_SCORE_METRICS_CURVES_H
#define EVALUATOR_SCORE_METRICS_CURVES_H

#include <stdint.h>

enum { CURVES_THRESHOLDS = 201 }; /* at j / 200 */

/* Turns what metric_curves counted for `classes` classes into counts (4, CURVES_THRESHOLDS): true positives, false
 * positives, true negatives and false negatives of one class. An example is positive at a threshold if its softmax (as
 * a float32) is not below it, compared as in TensorBoard's op: bucket = floor(softmax (T - 1)). */
void curves_counts(const int64_t *cells, int classes, int class, double *counts);

#endif
