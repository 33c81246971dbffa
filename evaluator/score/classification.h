/*
 * classification.h - counts over scored examples: confusion matrix, top 1, top 5, and for each class the numbers of a
 * precision-recall curve. All are exact integers, so counts of separate threads add up to the same total however the
 * examples are divided. Pure. One thread at a time for each struct.
 *
 * Top k is TensorFlow's in_top_k: correct if fewer than k scores are strictly above the label's (so ties are correct),
 * and never if a score is not finite. Top 1 is in_top_1, or argmax if ties_are_correct is 0. The confusion matrix
 * always uses argmax, the lowest index among equals (NaN is above nothing): a row of equal scores that counts as
 * correct with ties_are_correct is off the diagonal unless its label is 0.
 */
#ifndef EVALUATOR_SCORE_CLASSIFICATION_H
#define EVALUATOR_SCORE_CLASSIFICATION_H

#include "base/error.h"
#include "evaluator/score/metrics/metric.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { CLASSIFICATION_CLASSES_MAX = 1 << 16, CLASSIFICATION_CONFUSION_MAX = 1000 };

struct classification {
    int classes, ties_are_correct;
    unsigned metrics; /* a choice (metric.h) */
    int64_t examples, correct;
    int64_t *confusion; /* (classes, classes): row: label, column: prediction; NULL for more than CONFUSION_MAX */
    int64_t *cells[METRIC_COUNT]; /* of each chosen metric that counts, else NULL */
    int64_t *counts;              /* (cell_count) the confusion matrix, then the cells */
    size_t cell_count;
    double *softmax; /* (classes) scratch */
};

/* classes: 1 to CLASSIFICATION_CLASSES_MAX. ERR_ARG, ERR_NOMEM. On OK c is yours until classification_release(). */
int classification_init(struct classification *c, int classes, int ties_are_correct, unsigned metrics, struct error *e);
void classification_release(struct classification *c); /* one that is all zero is fine */
void classification_clear(struct classification *c);   /* all counts 0 */

/* Counts one example: (classes) logits and its label, 0 to classes - 1. Returns its softmax cross entropy, which the
 * caller sums in an order of its choice. */
double classification_add(struct classification *c, const float *logits, int32_t label);

/* into += from; both were made with the same options. */
void classification_merge(struct classification *into, const struct classification *from);

/* NaN for 0 of 0. */
static inline double classification_share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

double classification_top1(const struct classification *c); /* NaN without examples */
/* Precision: the share of examples predicted as this class that belong to it. Recall: the share of its examples
 * predicted as this class. NaN for 0 of 0. */
double classification_precision(const struct classification *c, int class);
double classification_recall(const struct classification *c, int class);
/* Means over the classes that occur as label or prediction, counting 0 of 0 as 0. NaN without examples. */
double classification_mean_precision(const struct classification *c);
double classification_mean_recall(const struct classification *c);

#endif
