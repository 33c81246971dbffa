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
#include "model/variable.h"

#include <stddef.h>
#include <stdint.h>

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

/* The most rows of this table that a batch of max_batch samples can use; 0: the variable is no table. */
size_t network_rows_most(const struct network *n, size_t variable);

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
