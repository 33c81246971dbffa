/*
 * initial_weights.h - begins a training with the variables of another one's checkpoint (--init-from): by name, by
 * scope, of TensorFlow's formats or safetensors, in whose files kernels may have PyTorch's order of dimensions.
 */
#ifndef TRAINER_INITIAL_WEIGHTS_H
#define TRAINER_INITIAL_WEIGHTS_H

#include "base/error.h"
#include "base/program/log.h"
#include "model/network.h"

/* Fills variables of n, weights and moving statistics, from the checkpoint: a prefix, a directory (its newest), or a
 * .safetensors file. scopes: "A[=B],...": variables A, A/... and A.... are B, B/... and B.... there, and all must fit;
 * NULL: all that fit are taken. Nothing is changed after an error. ERR_ARG: nothing fits, or not all of a scope;
 * ERR_IO, ERR_CORRUPT: as tensor_bundle.h. Reports in the log what was taken and what was not, unless `quiet`. */
int initial_weights_load(struct network *n, const char *path, const char *scopes, struct log *log, int quiet,
                         struct error *e);

#endif
