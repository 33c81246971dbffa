/*
 * table_protocol.h - the protocol between workers and the servers of tables: only the rows that a batch uses travel.
 * Workers are ranks 0 .. n-1, server j is rank n + j. table_parts.h says which rows a server holds, row_packet.h what
 * messages look like.
 *
 *   worker -> server    NAMES    before the worker trains on a batch: the rows that it uses, as of `step` updates
 *   server -> worker    VALUES   these rows, once the updates before are made
 *   worker -> server    SUMS     the sums of the gradients of these rows, once it has trained
 *   worker -> server    TABLE_CONTROL  int64: kind, then its argument
 *   server -> worker 0  STATE    for each of the server's parts and each array that the optimizer has, the rows
 *   server -> worker 0  WHOLE    the same of the weights alone
 *
 *   worker -> speaker   HOST_NAMES, HOST_SUMS   where the workers of a host exchange rows together (table_groups.h),
 *   speaker -> worker   HOST_VALUES             as with a server; of the host only the speaker, its first worker, is
 *                                               a "worker" above
 *
 * Every worker sends NAMES and SUMS to every server in every step, also if they name no row, so that a
 * server knows when a step's sums are complete. It makes the update when it is asked for anything as of the next step,
 * and all sums are there: a worker that abandons a step sends none, and that step is the last one. Who knows its next
 * batch sends NAMES right after SUMS, while the gradients of dense variables still travel (table_worker_foresee()); if
 * the step is abandoned then, they stay unanswered.
 *
 * Clipped (--clip-norm): what asks for a later state (NAMES, and COLLECT and WHOLE of TABLE_CONTROL) has the norm
 * of the last update's gradient, NAMES before everything else; norm_exchange.h says how workers find it. But where the
 * servers find it themselves, no worker says it, and SUMS come of an abandoned step, too.
 *
 * Alone (asynchronous): every SUMS is an update, made when parameter_protocol.h lets a push be taken. `step` is then
 * the number of the worker's pushes before it, and VALUES come once these are used. A cut sends STATE unasked.
 *
 * Tried (partition_search.h), before the first step: the same, with tags that are not part of a step, but what the
 * updates would change stays.
 */
#ifndef TRAINER_SERVER_TABLE_PROTOCOL_H
#define TRAINER_SERVER_TABLE_PROTOCOL_H

#include "trainer/collective/world.h"

#include <stdint.h>

/* Below those that are not part of a step, and above those of parameter_protocol.h. */
enum {
    TAG_NAMES = 29000,
    TAG_VALUES,
    TAG_SUMS,
    TAG_HOST_NAMES,
    TAG_HOST_VALUES,
    TAG_HOST_SUMS,
    TAG_ROWS, /* worker to worker: gathered_rows.h */
    TAG_TABLE_CONTROL = WORLD_TAG_ASIDE + 100,
    TAG_STATE,
    TAG_WHOLE,
    TAG_TRIAL = 2000 /* is added to those of a step */
};

enum table_control {
    /* int64: kind, step, and the norm, a double */
    TABLE_COLLECT, /* send the state as of so many updates */
    TABLE_WHOLE,   /* likewise, the values alone */
    TABLE_DONE,    /* this worker is; instead of the step: it has sent the sums of so many */
    TABLE_WORDS = 3
};

#endif
