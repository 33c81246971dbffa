/*
 * task.h - the score of a model, in training and in evaluation alike. There is one task, classification: a row of
 * logits against a label. Pure.
 */
#ifndef MODEL_TASK_H
#define MODEL_TASK_H

#include "model/real.h"

#include <stdint.h>

/* log sum of exp(z - max) - (z_label - max), in double. softmax (classes), if not NULL, gets exp(z - max) over its
 * sum. */
double task_cross_entropy(int classes, const real *logits, int32_t label, double *softmax);

/* Argmax: the largest logit, the lowest index among equals. A NaN is above nothing. */
int task_predicted(int classes, const real *logits);

/* 1 if fewer than k logits are above the label's and every logit is finite: TensorFlow's in_top_k. */
int task_in_top(int classes, const real *logits, int32_t label, int k);

/* 1 if the row is correct: in the top 1 if ties are correct, else by argmax. */
int task_correct(int classes, const real *logits, int32_t label, int ties_are_correct);

#endif
