/*
 * network.h - a built model: variables with names and shapes, forward, backward, scoring.
 *
 * All weights are one array of `parameters` reals; variable v owns [v.offset, v.offset + v.count) of it, in the layout
 * of its checkpoint tensor (HWIO kernels, [in, out] dense, row-major). Moving statistics of batch norm are a second
 * array, `statistics`. The exchange vector is what data-parallel training adds over workers:
 *   [0, parameters)                        gradients, each the SUM over the batch of d(loss)/d(weight)
 *   [parameters, parameters + statistics)  batch statistics (mean, biased variance) times the batch's weight
 *   [parameters + statistics]              the batch's weight, as in struct score
 * so that after adding over workers and dividing by its last element it holds means. Weight decay is not in it: it
 * depends only on the weights, and the optimizer adds it to the update.
 *
 * One network is for one thread at a time, and starts no threads. Calls after network_new cannot fail. The result of
 * training is a function of weights, batch, seed and step: always the same bits, whatever max_batch is. Inference of an
 * image may differ in the last bits depending on the images beside it.
 */
#ifndef MODEL_NETWORK_H
#define MODEL_NETWORK_H

#include "base/error.h"
#include "base/batch.h"
#include "model/model.h"
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

struct network;
struct network_call; /* layer_call.h */

/* max_batch: the largest batch in later calls; 0 builds only the table of variables (for a parameter server). The first
 * call loads the compute libraries. ERR_NOMEM, ERR_ARG; ERR_IO: such a library is missing. On OK *out is yours until
 * network_free(). */
int network_new(struct network **out, const struct model *model, int max_batch, struct error *e);
/* The same for inference alone, network_train() must not be called: it takes less memory, and is faster where a forward
 * pass may be rounded a little more than gradients bear. max_batch > 0. network_exchange() is NULL. */
int network_new_for_inference(struct network **out, const struct model *model, int max_batch, struct error *e);
/* Only to be looked at: its layers, calls and variables, without memory for values, so of any size. Errors and
 * ownership are those of network_new(). */
int network_describe(struct network **out, const struct model *model, struct error *e);
void network_free(struct network *n); /* NULL is fine */

const struct model *network_model(const struct network *n);
const struct variable *network_variables(const struct network *n, size_t *count); /* in order of construction */
const struct network_call *network_calls(const struct network *n, size_t *count); /* that made it; layer_call.h */
size_t network_parameter_count(const struct network *n);
size_t network_statistic_count(const struct network *n);
size_t network_exchange_count(const struct network *n); /* elements of the exchange vector */
/* The index in it at which v begins. */
size_t network_exchange_place(const struct network *n, const struct variable *v);

int network_max_batch(const struct network *n); /* as network_new() was told */

/* Makes n read and hand out the weights and moving statistics of `of`, a network of the same model, instead of its own,
 * which are freed. `of` is borrowed until n is freed. Several threads may then train, each its own network, as long as
 * nobody writes the weights. */
void network_share(struct network *n, struct network *of);
/* Moves n's own weights and moving statistics to that memory, which is borrowed until n is freed. Call it before they
 * are shared. */
void network_move(struct network *n, real *parameters, real *statistics);

real *network_parameters(struct network *n); /* (parameters); may be written between calls */
real *network_statistics(struct network *n); /* (statistics); the moving ones, used by inference */
real *network_exchange(struct network *n);   /* (network_exchange_count); overwritten by each training call */

/* Uses the caller's memory (as many reals, aligned to 64 bytes) for the exchange vector, for example a window that
 * other ranks read. Borrowed until free or the next call. */
void network_set_exchange(struct network *n, real *memory);

/* Fills parameters and statistics with the model's initial values: a pure function of seed. */
void network_initialize(struct network *n, uint64_t seed);

/* Sums over the batch of d(loss)/d(row), for the rows that the batch uses. Borrowed until the sink returns. No value is
 * -0: each is a sum that began with +0, so a row that another batch does not use may be left out of the sum of both, or
 * added as zeros, with the same bits. */
struct row_gradient {
    size_t variable;     /* index in network_variables() */
    size_t count, width; /* rows, each once; reals of one row */
    const int32_t *rows; /* (count) ascending */
    const real *values;  /* (count, width); a row's parts from several samples are added in sample order */
};

/* The most rows of this table that a batch of max_batch samples can use; 0: the variable is no table. */
size_t network_rows_most(const struct network *n, size_t variable);

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
/* NULL, the default: steps are never abandoned. Borrowed until free or the next call. */
void network_set_leave(struct network *n, network_leave *leave, void *context);
/* Asks it: 1: a step should be abandoned. */
int network_asked_to_leave(const struct network *n);

/* Forward with batch statistics and dropout, then backward. Fills the exchange vector. sink may be NULL. The score is
 * summed in sample order. 1: done; 0: abandoned: the exchange vector and *score are incomplete, and nothing else has
 * changed. */
int network_train(struct network *n, const struct batch *batch, uint64_t seed, const struct gradient_sink *sink,
                  struct score *score);

/* Forward with moving statistics, no dropout. input: as FIELD_INPUT. Writes logits (count, labels of a sample,
 * classes). */
void network_infer(struct network *n, const struct field *input, real *logits);
/* The same of a batch: of its input and, if the model reads them, its features. It needs no labels. */
void network_infer_batch(struct network *n, const struct batch *batch, real *logits);
/* The same, scored against labels. */
void network_score(struct network *n, const struct batch *batch, struct score *score);

/* Weight decay's part of the loss with the current weights: sum over variables of decay * 1/2 * |w|^2. */
double network_decay_loss(const struct network *n);
/* The same of one variable. */
double network_decay_loss_of(const struct network *n, const struct variable *v);

/* The convolution code in use, once there is a network: "oneDNN 2.6" or "OpenBLAS". Static. */
const char *network_backend(void);
/* What its convolutions and products compute in: its model's precision, or float32 where this processor has no
 * instructions for that. */
enum precision network_precision(const struct network *n);
/* 1, once there is a network: this processor multiplies bfloat16 faster than float32. */
int network_bfloat16_is_fast(void);
/* The kernels in use, which decide about the last bits: "OpenBLAS Cooperlake, oneDNN 2.6 (instructions 0xe7),
 * bfloat16", of which the last word says network_precision(). */
void network_kernels(const struct network *n, char *text, size_t size);

#endif
