/*
 * aggregation.h - the arithmetic of a parameter server: workers' packets of gradients, added in worker order, update
 * the part of the state that this server holds. The state lies packed (packed_state.h), so a packet is added where it
 * arrived, applied where it is kept, and sent from there. No message is in here and no clock.
 *
 * One thread.
 */
#ifndef TRAINER_SERVER_AGGREGATION_H
#define TRAINER_SERVER_AGGREGATION_H

#include "base/error.h"
#include "trainer/optimizer.h"
#include "trainer/server/packed_state.h"

#include <stddef.h>
#include <stdint.h>

struct aggregation;

/* Takes its part of the state out of the optimizer; optimizer (for its rates) and packing are borrowed. ERR_NOMEM. OK:
 * *out is yours, aggregation_free() it. */
int aggregation_new(struct aggregation **out, struct optimizer *o, const struct packing *p, int workers,
                    int synchronous, struct error *e);
void aggregation_free(struct aggregation *a); /* NULL is fine */

/* Where the next push of packet k of this worker is to arrive. */
real *aggregation_incoming(struct aggregation *a, int worker, size_t k);

/* Update number `step` (the updates before it) of packet k. Synchronous: of the sum of all workers' pushes, whatever
 * `worker` is; else of this one's. Packet 0 comes first, for it has the weight. flags go with the last packet. */
void aggregation_update(struct aggregation *a, int worker, size_t k, int64_t step, uint32_t flags);

/* The new values of packet k for this worker, and how many elements: the last packet's are one more, flags as a number.
 * They stay until the packet's next update; asynchronous: until this worker's next one. */
const real *aggregation_values(const struct aggregation *a, int worker, size_t k, size_t *count);

/* All of the state, as of now (a copy, until the next call); or, synchronous, as it was before the last update of each
 * packet, until the next update. */
const real *aggregation_snapshot(struct aggregation *a, int before, size_t *count);

#endif
