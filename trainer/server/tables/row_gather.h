/*
 * row_gather.h - the gradients of tables all-gathered, as Horovod does with TensorFlow's IndexedSlices: every worker
 * sends the rows that its batch used to all others, and each adds those of all and makes the same update of its own,
 * whole tables. No servers. The sums are those of table_update.h, by the rule `mean`, so the bits are those of the same
 * gradients added as dense vectors. Source: strategies, 5.1, 5.
 *
 *   worker -> worker    ROWS    the sums of its vectors (row_packet.h), in every step
 *
 * A worker that abandons a step sends no rows, so that nobody waits for them. One thread.
 */
#ifndef TRAINER_SERVER_TABLES_ROW_GATHER_H
#define TRAINER_SERVER_TABLES_ROW_GATHER_H

#include "base/error.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/server/tables/table_server.h"

#include <stdint.h>

struct row_gather;

/* Of setup: world, optimizer, reduction, workers, samples, clock; it is copied, its pointers are borrowed. ERR_NOMEM;
 * ERR_ARG: more rows than a message can have. On OK *out is yours, row_gather_free() it. */
int row_gather_new(struct row_gather **out, const struct table_setup *setup, int worker, struct error *e);
void row_gather_free(struct row_gather *g); /* NULL is fine */

/* Before training: starts receiving the rows of `step`. */
int row_gather_begin(struct row_gather *g, int64_t step, struct error *e);
/* After it: sends this worker's, out of m, whose other sums are in vectors; m NULL: the step is abandoned. They may be
 * waited for only after row_gather_begin(). */
int row_gather_send(struct row_gather *g, const struct micro_shards *m, real *const *vectors, struct error *e);
/* Waits for the rows of all others, and adds them. ERR_PEER, with a sentence that names those waited for; ERR_CORRUPT:
 * what came is not sound. */
int row_gather_add(struct row_gather *g, struct error *e);
/* Finds the norm of the whole gradient, if it is to be clipped (optimizer_measure_rows()): sum: the exchange vector's,
 * in which tables are not read. */
void row_gather_measure(const struct row_gather *g, const real *sum);
/* Makes the update of the tables. */
void row_gather_update(struct row_gather *g);
/* After the last step: waits until all that was sent has left. */
int row_gather_finish(struct row_gather *g, struct error *e);

#endif
