/*
 * table_host.h - what the workers of one host do among themselves when they exchange rows with the servers together
 * (table_groups.h): by messages between them, their first worker, the speaker, collects the rows that they need, hands
 * the values out, and adds their sums. So what leaves the host is each row once. The messages are those of
 * row_packet.h. One thread. Errors: ERR_PEER, with a sentence that names the worker waited for.
 */
#ifndef TRAINER_SERVER_TABLES_TABLE_HOST_H
#define TRAINER_SERVER_TABLES_TABLE_HOST_H

#include "base/error.h"
#include "trainer/server/tables/table_server.h"

#include <stddef.h>
#include <stdint.h>

struct table_host;

/* For this worker of a group of several. setup is copied, its pointers and the tables of `parts` are borrowed.
 * ERR_NOMEM, ERR_ARG. On OK *out is yours, table_host_free() it. */
int table_host_new(struct table_host **out, const struct table_setup *setup, const struct table_parts *parts,
                   int worker, struct error *e);
void table_host_free(struct table_host *h); /* NULL is fine */

/* 1: this worker is the speaker. */
int table_host_speaks(const struct table_host *h);

/* The speaker: adds to ids (ascending, *count) those that the others need. It has room for the rows of all. */
int table_host_gather(struct table_host *h, int64_t step, int32_t *ids, size_t *count, struct error *e);
/* The speaker: sends the others the values of their rows, which its network has. */
int table_host_hand_out(struct table_host *h, struct error *e);
/* The speaker: the sums of the group: of its own (vectors, tables) and the others'. *gradients (sums, tables) and
 * *weights (sums) are borrowed until the next call. *left: 1: one of them has abandoned the step, so there are none. */
int table_host_add(struct table_host *h, int64_t step, const struct row_gradient *own, const real *own_weights,
                   const struct row_gradient **gradients, const real **weights, int *left, struct error *e);

/* All others: fetches the values of these rows into the network. */
int table_host_fetch(struct table_host *h, int64_t step, const int32_t *ids, size_t count, struct error *e);
/* All others: begins to send the sums of their vectors; NULL: has abandoned the step. */
int table_host_push(struct table_host *h, int64_t step, const struct row_gradient *own, const real *own_weights,
                    struct error *e);

/* After the last step: waits until all is sent. */
int table_host_finish(struct table_host *h, struct error *e);

#endif
