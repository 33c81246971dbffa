/*
 * table_norm.h - the norm of a gradient whose dense part all workers have, and whose tables are on servers: with each
 * step every server sends all workers the sums of squares of its rows (trainer/update/gradient_parts.h), in one
 * message, and each worker computes the norm of these and its own. What a worker asks of a server as of the next step
 * says the norm of this one (table_protocol.h). Not for a step that a worker has abandoned. One thread.
 *
 *   server -> worker    SQUARES    int64 step, then the server's sums, as doubles
 */
#ifndef TRAINER_SERVER_TABLES_TABLE_NORM_H
#define TRAINER_SERVER_TABLES_TABLE_NORM_H

#include "base/error.h"
#include "trainer/collective/dense_part.h"
#include "trainer/server/tables/table_server.h"

#include <stdint.h>

struct table_norm;

/* For either side. setup is copied, its pointers and `dense` are borrowed. ERR_NOMEM. On OK *out is yours,
 * table_norm_free() it. */
int table_norm_new(struct table_norm **out, const struct table_setup *setup, const struct dense_part *dense,
                   struct error *e);
void table_norm_free(struct table_norm *t); /* NULL is fine */

/* A server, often: sends the sums once all of the step have come. 1: it did; 0: not now. */
int table_norm_offer(struct table_norm *t, struct table_server *s, int server, struct error *e);
/* A server, after the last step. */
int table_norm_end(struct table_norm *t, struct error *e);

/* A worker: the norm of the gradient of `step`. packed: the sum of the dense part; parts: of the servers. ERR_PEER,
 * with a sentence that names the server waited for. */
int table_norm_find(struct table_norm *t, int64_t step, const real *packed, const struct table_parts *parts,
                    double *norm, struct error *e);

#endif
