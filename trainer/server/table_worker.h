/*
 * table_worker.h - a worker's side of table_protocol.h: before each batch it fetches the rows that the batch uses into
 * its network, and after it sends the sums of their gradients: itself, or with the other workers of its host through
 * the first of them. Other rows of its network are out of date. One thread. Errors: ERR_PEER, with a
 * sentence that names the server, or the worker, waited for.
 */
#ifndef TRAINER_SERVER_TABLE_WORKER_H
#define TRAINER_SERVER_TABLE_WORKER_H

#include "base/batch.h"
#include "base/error.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/server/table_server.h"

#include <stdint.h>

struct table_worker;

/* As for table_server_new(). */
int table_worker_new(struct table_worker **out, const struct table_setup *setup, int worker, struct error *e);
void table_worker_free(struct table_worker *w); /* NULL is fine */

/* After the push of the step before: asks for the rows that the batch of the next step will use, as of `step` updates,
 * so that they travel while this step still waits for other things; fetch() takes them. Does nothing where the question
 * says more (the norm), or where it is asked together with other workers. */
int table_worker_foresee(struct table_worker *w, int64_t step, const struct batch *batch, struct error *e);
/* After `step` updates the step was abandoned: what was asked for as of a later one nobody will answer. */
void table_worker_forget(struct table_worker *w, int64_t step);
/* Fetches the rows that the batch uses, as of `step` updates; alone: as they are once this worker's pushes are used. */
int table_worker_fetch(struct table_worker *w, int64_t step, const struct batch *batch, struct error *e);
/* TABLE_CLIPS_BY_WORKER: the norm of the gradient of this step, which nobody has abandoned. */
void table_worker_clip(struct table_worker *w, double norm);
/* Into which parts the tables are cut. Borrowed. */
const struct table_parts *table_worker_parts(const struct table_worker *w);
/* Flags (enum tally_flag) of servers' signals since the last call. */
uint32_t table_worker_flags(struct table_worker *w);

/* Begins to send the sums of the rows that m has computed, with the weights of each of its vectors. */
int table_worker_push(struct table_worker *w, int64_t step, const struct micro_shards *m, real *const *vectors,
                      struct error *e);

/* Instead of push, for a step that this worker abandons, whether or not it has fetched rows. */
int table_worker_leave(struct table_worker *w, int64_t step, struct error *e);
/* In a trial (table_setup.trial): a step without training, after `step` others: fetches the rows of the batch, and
 * begins to send sums of any values for them. batch NULL: no rows. */
int table_worker_try(struct table_worker *w, int64_t step, const struct batch *batch, struct error *e);

/* Bytes that it has sent in steps. */
int64_t table_worker_bytes(const struct table_worker *w);

/* On worker 0, between steps: fetches the whole tables as of `step` updates; with `state` also their slots and
 * averages, into the optimizer. Alone: as they are; the state comes when the servers' table_server_state() sends it. */
int table_worker_collect(struct table_worker *w, int64_t step, int state, struct error *e);
/* After the last step. */
int table_worker_finish(struct table_worker *w, struct error *e);

#endif
