/*
 * tensor_role.h - tells from name and type what a tensor of a checkpoint is for. Pure.
 *
 *   bookkeeping   how the training was run and how far it got, not what it made: evalboard/..., and counters: one
 *                 integer (or a float that TensorFlow 1 programs keep a step in) named global_step, step, save_counter,
 *                 iterations, iter or num_batches_tracked; TensorFlow's description of its objects
 *   optimizer     slots and powers of TensorFlow's optimizers (weights/Momentum, weights/Adam_1, beta1_power,
 *                 .../.OPTIMIZER_SLOT/...), and what is under optimizer/, but for the weights that Keras 3 lists there
 *   average       weights/ExponentialMovingAverage
 *   weight        all else: weights, and statistics of normalization
 */
#ifndef CHECKPOINT_TENSOR_ROLE_H
#define CHECKPOINT_TENSOR_ROLE_H

#include <stdint.h>

enum tensor_role {
    TENSOR_ROLE_WEIGHT,
    TENSOR_ROLE_AVERAGE,
    TENSOR_ROLE_OPTIMIZER,
    TENSOR_ROLE_BOOKKEEPING,
    TENSOR_ROLES,
};

enum tensor_role tensor_role(const char *name, int type, uint64_t elements);

const char *tensor_role_name(enum tensor_role role); /* "weight": for programs */

#endif
