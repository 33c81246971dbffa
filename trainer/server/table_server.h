/*
 * table_server.h - a server's side of table_protocol.h: holds some rows of the tables in its optimizer's arrays, hands
 * out those that workers name, and updates them with the sums that they send. One thread; never blocks: call
 * table_server_look() until it ends. ERR_CORRUPT: a message is not sound.
 *
 * Before it: the update of rows by the sums of workers.
 */
#ifndef TRAINER_SERVER_TABLE_SERVER_H
#define TRAINER_SERVER_TABLE_SERVER_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/world.h"
#include "trainer/optimizers/optimizer.h"
#include "trainer/server/table_groups.h"
#include "trainer/server/table_parts.h"
#include "trainer/timing/phase_clock.h"

#include <stdint.h>

/* ---- table update ------------------------------------------------------------------------------------------------ */

/*
 * What becomes of the sums of rows that workers send: adds them, by the rule of --sparse-reduce, and
 * applies the update. No messages here.
 *
 * With n workers, G the weight of all their samples, and c the number of workers whose batch uses a row, the gradient
 * of the row is, of the sum S over all samples (source: strategies, 1.4):
 *   mean           S / G       what the table would get as a dense variable
 *   sum            S / (G/n)   the sum of the workers' mean gradients
 *   mean-touching  S / (G/n c) their mean over the workers that use the row
 * where a worker's part of G counts as G/n.
 */

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
/* optimizer_measure_rows() with what was added, and with the other sums. */
void table_update_measure(const struct table_update *u, int64_t step, const real *sum);
/* Makes update number `step` with what was added. */
void table_update_apply(struct table_update *u, int64_t step);
/* Asynchronous: with one worker's only vector: gradients (tables). */
void table_update_alone(struct table_update *u, int64_t step, const struct row_gradient *gradients, real weight);

/* ---- table server ------------------------------------------------------------------------------------------------ */

/* Who says the norm of the whole gradient, without which an update is not made. */
enum table_clipping {
    TABLE_CLIPS_NOTHING,   /* it is not needed */
    TABLE_CLIPS_BY_CALLER, /* table_server_clip(); workers then send sums with an abandoned step, too */
    TABLE_CLIPS_BY_WORKER, /* table_worker_clip() */
};

struct table_setup {
    struct world *world;               /* workers are its first ranks, server j is rank workers + j */
    struct optimizer *optimizer;       /* its state at the start; holds the tables */
    const struct reduction *reduction; /* the workers' vectors, and how they are added */
    const struct table_groups *groups; /* of the workers */
    int workers, servers;
    enum sparse_reduce rule;
    int partitions; /* of each table */
    int trial;      /* 1: updates change nothing; only the time that they take counts. Not alone */
    size_t samples; /* the most samples of a worker's batch */
    int64_t first_step;
    /* 1: asynchronous: every push is an update, which the caller makes; see table_server_take(). Each worker is alone
     * in its group. */
    int alone;
    enum table_clipping clipping; /* not alone */
    struct phase_clock *clock;    /* may be NULL */
};

struct table_server;

/* The rows of a part in array k of a table's state: values, then what the optimizer keeps of each. count 0: it keeps no
 * such array. */
enum { TABLE_ARRAYS = 4 };
struct optimizer_array table_state(const struct table_setup *setup, const struct table_parts *p, size_t part, int k);

/* The tag of a message of a step. */
int table_tag(const struct table_setup *setup, int tag);

/* setup is copied; its pointers are borrowed. ERR_NOMEM, ERR_ARG. On OK *out is yours, table_server_free() it. */
int table_server_new(struct table_server **out, const struct table_setup *setup, int server, struct error *e);
void table_server_free(struct table_server *s); /* NULL is fine */

/* Starts receiving. */
int table_server_begin(struct table_server *s, struct error *e);
/* Takes what has come, and answers. 1: something has; 0: nothing. flags: of this server's signal, for all workers. */
int table_server_look(struct table_server *s, uint32_t flags, struct error *e);
/* Alone: 1: this worker's next sums have come; 0: not yet. Then table_server_apply() makes update number `step` (the
 * number of updates before it) with them. */
int table_server_take(struct table_server *s, int worker, struct error *e);
int table_server_apply(struct table_server *s, int worker, int64_t step, struct error *e);
/* Clipped: 1: all sums of the step have come. Then table_server_squares() sets the sums of squares of this server's
 * rows (trainer/update/gradient_norm.h), it being the holder of its number. */
int table_server_has_sums(const struct table_server *s);
void table_server_squares(struct table_server *s, const struct gradient_parts *parts, double *sums);
/* BY_CALLER: the optimizer knows the norm. */
void table_server_clip(struct table_server *s);
int64_t table_server_step(const struct table_server *s); /* updates made */
const struct table_parts *table_server_parts(const struct table_server *s);
/* Alone: sends worker 0 the state as of now, and waits until it has taken it. */
int table_server_state(struct table_server *s, struct error *e);
/* 1: all workers are done. */
int table_server_ended(const struct table_server *s);
/* Cancels what it still receives, and waits for what it sends. */
int table_server_end(struct table_server *s, struct error *e);

/* Marks in late (workers) whom it waits for: those that are behind others, or all. Returns the step. */
int64_t table_server_waits_for(const struct table_server *s, char *late);
/* The tables' names, for messages. */
void table_server_names(const struct table_server *s, char *text, size_t size);

#endif
