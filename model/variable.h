/*
 * variable.h - what a network is made of and hands out while it trains: its variables, and gradients as they become
 * final.
 */
#ifndef MODEL_VARIABLE_H
#define MODEL_VARIABLE_H

#include "model/real.h"

#include <stddef.h>
#include <stdint.h>

enum variable_kind { VARIABLE_WEIGHT, VARIABLE_STATISTIC };
/* The last five are for kernel_options alone; of the numbers of inputs and outputs of a kernel they make
 *   GLOROT        uniform within sqrt(6 / (inputs + outputs))
 *   UNIT_SCALING  uniform within sqrt(3 / inputs)
 *   HE            normal of deviation sqrt(2 / inputs)
 *   HE_FAN_OUT    normal of deviation sqrt(2 / outputs)
 *   VARIANCE_SCALING  normal cut at twice its deviation, which is then sqrt(1 / inputs): TensorFlow's
 *                     variance_scaling_initializer() */
enum initial_kind {
    INITIAL_CONSTANT,
    INITIAL_NORMAL,
    INITIAL_TRUNCATED_NORMAL,
    INITIAL_UNIFORM,
    INITIAL_GLOROT,
    INITIAL_UNIT_SCALING,
    INITIAL_HE,
    INITIAL_HE_FAN_OUT,
    INITIAL_VARIANCE_SCALING
};

struct variable {
    char name[128];          /* as in the checkpoint: "unit_1_0/sub1/conv1/DW" */
    enum variable_kind kind; /* which array it lives in */
    int rank;
    int64_t shape[4];
    size_t offset, count;
    size_t row_width; /* of a table, whose gradient may come as rows (struct row_gradient): reals of a row; 0: none */
    int pixels;       /* of a dense kernel: of the image that its inputs are, (pixels, channels); 0: they are none */
    double decay;     /* weight decay d: the loss has d * 1/2 * |w|^2, the gradient d * w */
    int frozen;       /* 1: not trained (model.frozen): its gradient is 0, and it has no decay; a statistic stays */
    enum initial_kind initial;
    double initial_value;   /* constant; standard deviation; or bound of the uniform */
    char debias_scope[128]; /* STATISTIC with zero-debiased moving average: its scope S, else "" */
};

/* Sums over the batch of d(loss)/d(row), for the rows that the batch uses. Borrowed until the sink returns. No value is
 * -0: each is a sum that began with +0, so a row that another batch does not use may be left out of the sum of both, or
 * added as zeros, with the same bits. */
struct row_gradient {
    size_t variable;     /* index in network_variables() */
    size_t count, width; /* rows, each once; reals of one row */
    const int32_t *rows; /* (count) ascending */
    const real *values;  /* (count, width); a row's parts from several samples are added in sample order */
};

/* Receives progress of the gradients during the backward pass, in the training thread. */
struct gradient_sink {
    /* Everything in the exchange vector at or above `low` is final. low falls from parameters (statistics are final
     * after the forward pass) to 0. */
    void (*dense)(void *context, size_t low);
    /* The gradient of a table of which the batch uses some rows. Called before `low` passes the table, whose elements
     * in the exchange vector stay 0. NULL: these have the rows' gradients, and 0 elsewhere. */
    void (*rows)(void *context, const struct row_gradient *g);
    void *context;
};

/* Called by network_train between slices of a few images, until all gradients are final. 1: abandon the step. */
typedef int network_leave(void *context);

#endif
