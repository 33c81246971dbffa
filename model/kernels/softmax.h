/*
 * softmax.h - softmax cross entropy of one row of logits, and whether the row is right.
 */
#ifndef MODEL_KERNELS_SOFTMAX_H
#define MODEL_KERNELS_SOFTMAX_H

#include "model/real.h"

#include <stdint.h>

/* log sum of exp(z - max) - (z_label - max), in double. With gradient (classes): softmax - one-hot, else NULL. */
double softmax_cross_entropy(int classes, const real *logits, int32_t label, real *gradient);

/* 1 where the label's logit is the top one. ties_are_correct: no other is above it, and every logit is finite
 * (TensorFlow's in_top_k); else: it is the largest, the lowest index among equals, as argmax says. */
int softmax_correct(int classes, const real *logits, int32_t label, int ties_are_correct);

#endif
