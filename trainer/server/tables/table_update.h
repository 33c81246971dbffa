/*
 * table_update.h - what becomes of the sums of rows that workers send: adds them, by the rule of --sparse-reduce, and
 * applies the update. No messages here.
 *
 * With n workers, G the weight of all their samples, and c the number of workers whose batch uses a row, the gradient
 * of the row is, of the sum S over all samples (source: strategies, 1.4):
 *   mean           S / G       what the table would get as a dense variable
 *   sum            S / (G/n)   the sum of the workers' mean gradients
 *   mean-touching  S / (G/n c) their mean over the workers that use the row
 * where a worker's part of G counts as G/n.
 */
#ifndef TRAINER_SERVER_TABLES_TABLE_UPDATE_H
#define TRAINER_SERVER_TABLES_TABLE_UPDATE_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/reduction.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/server/tables/table_parts.h"

#include <stdint.h>

#define SPARSE_REDUCES "mean|sum|mean-touching" /* in the order of the constants */
enum sparse_reduce { SPARSE_MEAN, SPARSE_SUM, SPARSE_MEAN_TOUCHING };

struct table_update;

/* reduction: the vectors of the workers, borrowed. most: rows of all pushes of a step. The optimizer, whose arrays hold
 * the tables, and parts are borrowed. ERR_NOMEM. On OK *out is yours, table_update_free() it. */
int table_update_new(struct table_update **out, struct optimizer *o, const struct table_parts *parts,
                     const struct reduction *reduction, enum sparse_reduce rule, size_t most, struct error *e);
void table_update_free(struct table_update *u); /* NULL is fine */

/* Adds all vectors: gradients (vectors, tables), weights (vectors). */
void table_update_add(struct table_update *u, const struct row_gradient *gradients, const real *weights);
/* The sums of squares of what was added: of this server's parts of the tables, if it is to be clipped. */
struct gradient_parts;
void table_update_squares(const struct table_update *u, int64_t step, const struct gradient_parts *parts, int server,
                          double *sums);
/* optimizer_measure_rows() with what was added, and with the other sums. */
void table_update_measure(const struct table_update *u, int64_t step, const real *sum);
/* Makes update number `step` with what was added. */
void table_update_apply(struct table_update *u, int64_t step);
/* Asynchronous: with one worker's only vector: gradients (tables). */
void table_update_alone(struct table_update *u, int64_t step, const struct row_gradient *gradients, real weight);

#endif
