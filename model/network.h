/*
 * network.h - a built model: variables with names and shapes, forward, backward, scoring.
 *
 * All weights are one array of `parameters` reals; variable v owns [v.offset, v.offset + v.count) of it, in the layout
 * of its checkpoint tensor (HWIO kernels, [in, out] dense, row-major). Moving statistics of batch norm are a second
 * array, `statistics`. The exchange vector is what data-parallel training adds up over workers:
 *   [0, parameters)                        gradients, each the SUM over the batch of d(loss)/d(weight)
 *   [parameters, parameters + statistics)  batch statistics (mean, biased variance) times the batch's weight
 *   [parameters + statistics]              the batch's weight, that of struct score
 * so that after adding over workers and dividing by its last element it holds means. Weight decay is not in it: it
 * depends on the weights alone and is added where the optimizer applies the update.
 *
 * One network is for one thread at a time, and starts no threads. Calls after network_new cannot fail. What training
 * gives is a function of the weights, the batch, seed and step: the same bits again, whatever max_batch is. Inference
 * of an image may differ in the last bits with the images beside it.
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
enum initial_kind { INITIAL_CONSTANT, INITIAL_NORMAL, INITIAL_TRUNCATED_NORMAL, INITIAL_UNIFORM };

struct variable {
    char name[128];          /* as in the checkpoint: "unit_1_0/sub1/conv1/DW" */
    enum variable_kind kind; /* which array it lives in */
    int rank;
    int64_t shape[4];
    size_t offset, count;
    double decay;            /* weight decay d: the loss has d * 1/2 * |w|^2, the gradient d * w */
    enum initial_kind initial;
    double initial_value;    /* constant; standard deviation; or bound of the uniform */
    char debias_scope[128];  /* STATISTIC with zero-debiased moving average: its scope S, else "" */
};

struct network;

/* max_batch: the largest batch the calls below get; 0 builds the table of variables only (a parameter server). The
 * first call loads the libraries that compute.
 * ERR_NOMEM, ERR_ARG; ERR_IO: such a library is missing. On OK *out is yours until network_free(). */
int network_new(struct network **out, const struct model *model, int max_batch, struct error *e);
void network_free(struct network *n); /* NULL is fine */

const struct model *network_model(const struct network *n);
const struct variable *network_variables(const struct network *n, size_t *count); /* in order of construction */
size_t network_parameter_count(const struct network *n);
size_t network_statistic_count(const struct network *n);
size_t network_exchange_count(const struct network *n); /* elements of the exchange vector */
/* The one at which v begins. */
size_t network_exchange_place(const struct network *n, const struct variable *v);

real *network_parameters(struct network *n); /* (parameters); write to it freely between calls */
real *network_statistics(struct network *n); /* (statistics); the moving ones, used by inference */
real *network_exchange(struct network *n);   /* (network_exchange_count); overwritten by each training call */

/* Uses the caller's memory (that many reals, aligned to 64 bytes) for the exchange vector, for example a window that
 * other ranks read. Borrowed until free or the next call. */
void network_set_exchange(struct network *n, real *memory);

/* Fills parameters and statistics with the model's initial values: a pure function of seed. */
void network_initialize(struct network *n, uint64_t seed);

/* Sums over the batch of d(loss)/d(row), of the rows that it names. Borrowed until the sink returns. */
struct row_gradient {
    size_t variable;     /* its place in network_variables() */
    size_t count, width; /* rows named, each once; reals of one */
    const int32_t *rows; /* (count) rising */
    const real *values;  /* (count, width); what one row gets from several samples is added in sample order */
};

/* Who is told how far gradients are, during the backward pass, from the training thread. */
struct gradient_sink {
    /* Everything in the exchange vector at or above `low` is final. low falls from parameters (statistics are final
     * after the forward pass) to 0. */
    void (*dense)(void *context, size_t low);
    /* The gradient of a table of which the batch names some rows. Comes before `low` passes the table, whose elements
     * in the exchange vector stay 0. NULL: they hold these rows, and 0 elsewhere. */
    void (*rows)(void *context, const struct row_gradient *g);
    void *context;
};

/* Asked in network_train between two slices of a few images, until all is final. 1: leave the step where it is. */
typedef int network_leave(void *context);
/* NULL, as it is at the start: steps are never left. Borrowed until free or the next call. */
void network_set_leave(struct network *n, network_leave *leave, void *context);

/* Forward with batch statistics and dropout, then backward. Fills the exchange vector. sink may be NULL. The score is
 * summed in sample order. 1: done; 0: left, the exchange vector and *score hold parts of what they should, and nothing
 * else has changed. */
int network_train(struct network *n, const struct batch *batch, uint64_t seed, const struct gradient_sink *sink,
                  struct score *score);

/* Forward with moving statistics, no dropout. input: as FIELD_INPUT. Logits (count, classes) into `logits`. */
void network_infer(struct network *n, const struct field *input, real *logits);
/* The same, scored against labels. */
void network_score(struct network *n, const struct batch *batch, struct score *score);

/* Weight decay's part of the loss at the present weights: sum over variables of decay * 1/2 * |w|^2. */
double network_decay_loss(const struct network *n);
/* The same of one variable. */
double network_decay_loss_of(const struct network *n, const struct variable *v);

/* Which convolution code is used, once there is a network: "oneDNN 2.6" or "OpenBLAS". Static. */
const char *network_backend(void);

#endif
