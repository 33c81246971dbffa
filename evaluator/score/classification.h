/*
 * classification.h - counts over scored examples: confusion matrix, top 1, top 5, and for each class the numbers behind
 * a precision-recall curve. All are exact integers, so parts counted apart (by threads) add up to the same whole
 * however the examples were dealt out. Pure: numbers in and out. One thread at a time for each struct.
 *
 * Top k is TensorFlow's in_top_k: right where fewer than k scores are strictly above the label's (so ties are right),
 * and never where a score is not finite. Top 1 is that, or argmax where ties_are_correct is 0. The confusion matrix
 * always takes argmax, the lowest index among equals (a NaN is above nothing): a row of equal scores that a model with
 * ties_are_correct counts as right is off the diagonal unless its label is 0.
 */
#ifndef EVALUATOR_SCORE_CLASSIFICATION_H
#define EVALUATOR_SCORE_CLASSIFICATION_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { CLASSIFICATION_TOP = 5, CLASSIFICATION_THRESHOLDS = 201, CLASSIFICATION_CLASSES_MAX = 1 << 16 };

struct classification {
    int classes, ties_are_correct;
    int thresholds;                        /* of the curves, at j / (thresholds - 1); 0: no curves are counted */
    int64_t examples, correct, correct_top; /* correct_top: among the CLASSIFICATION_TOP highest */
    int64_t *confusion;                    /* (classes, classes): row the label, column what was predicted */
    int64_t *positives, *negatives;        /* (classes, thresholds): examples of the class, and of others, by the
                                              highest threshold that its softmax reaches */
    double *softmax;                       /* (classes) scratch */
};

/* classes 1 to CLASSIFICATION_CLASSES_MAX, thresholds 0 or 2 and more. ERR_ARG, ERR_NOMEM. On OK c is yours until
 * classification_release(). */
int classification_init(struct classification *c, int classes, int ties_are_correct, int thresholds, struct error *e);
void classification_release(struct classification *c); /* one that is all zero is fine */
void classification_clear(struct classification *c);   /* all counts 0 */

/* One example: classes scores (logits) and its label, 0 to classes - 1. Returns its softmax cross entropy, which is the
 * caller's to sum in an order of its choice. */
double classification_add(struct classification *c, const float *logits, int32_t label);

/* into += from; both were made with the same numbers. */
void classification_merge(struct classification *into, const struct classification *from);

double classification_top1(const struct classification *c); /* NaN without examples, as the next */
double classification_top(const struct classification *c);
/* Of those predicted as this class, how many are; of those that are, how many were predicted so. NaN for 0 of 0. */
double classification_precision(const struct classification *c, int class);
double classification_recall(const struct classification *c, int class);
/* Means over the classes that occur as label or prediction, 0 of 0 as 0. NaN without examples. */
double classification_mean_precision(const struct classification *c);
double classification_mean_recall(const struct classification *c);

/* counts: (4, thresholds), true positives, false positives, true negatives and false negatives of the class against
 * all others. An example is positive at a threshold when its softmax (as a float32) is not below it, where thresholds
 * are compared as TensorBoard's op does: bucket = floor(softmax (thresholds - 1)). */
void classification_curve(const struct classification *c, int class, double *counts);

#endif
