/*
 * classification.h - counts over scored examples: confusion matrix, top 1, and what chosen metrics count. All are exact
 * integers, so parts counted apart (by threads) add up to the same whole however the examples were dealt out. Pure:
 * numbers in and out. One thread at a time for each struct.
 *
 * Top k is TensorFlow's in_top_k: right where fewer than k scores are strictly above the label's (so ties are right),
 * and never where a score is not finite. Top 1 is that, or argmax where ties_are_correct is 0. The confusion matrix
 * always takes argmax, the lowest index among equals (a NaN is above nothing): a row of equal scores that a model with
 * ties_are_correct counts as right is off the diagonal unless its label is 0.
 */
#ifndef EVALUATOR_SCORE_CLASSIFICATION_H
#define EVALUATOR_SCORE_CLASSIFICATION_H

#include "base/error.h"
#include "evaluator/score/metrics/metric.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum { CLASSIFICATION_CLASSES_MAX = 1 << 16 };

struct classification {
    int classes, ties_are_correct;
    unsigned metrics;               /* a choice (metric.h) */
    int64_t examples, correct;
    int64_t *confusion;             /* (classes, classes): row the label, column what was predicted */
    int64_t *cells[METRIC_COUNT];   /* of each chosen metric that counts, else NULL */
    size_t cell_count;              /* with those of the confusion matrix, which they lie behind */
    double *softmax;                /* (classes) scratch */
};

/* classes 1 to CLASSIFICATION_CLASSES_MAX. ERR_ARG, ERR_NOMEM. On OK c is yours until classification_release(). */
int classification_init(struct classification *c, int classes, int ties_are_correct, unsigned metrics,
                        struct error *e);
void classification_release(struct classification *c); /* one that is all zero is fine */
void classification_clear(struct classification *c);   /* all counts 0 */

/* One example: classes scores (logits) and its label, 0 to classes - 1. Returns its softmax cross entropy, which is the
 * caller's to sum in an order of its choice. */
double classification_add(struct classification *c, const float *logits, int32_t label);

/* into += from; both were made with the same numbers. */
void classification_merge(struct classification *into, const struct classification *from);

/* NaN for 0 of 0. */
static inline double classification_share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

double classification_top1(const struct classification *c); /* NaN without examples */
/* Of those predicted as this class, how many are; of those that are, how many were predicted so. NaN for 0 of 0. */
double classification_precision(const struct classification *c, int class);
double classification_recall(const struct classification *c, int class);
/* Means over the classes that occur as label or prediction, 0 of 0 as 0. NaN without examples. */
double classification_mean_precision(const struct classification *c);
double classification_mean_recall(const struct classification *c);

#endif
