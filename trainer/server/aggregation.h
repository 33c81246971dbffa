/*
 * aggregation.h - the arithmetic of a parameter server: adds workers' packets of gradients (reduction.h), and updates
 * the part of the state that this server holds. The state is packed (packed_state.h), so a packet is added where it
 * arrived, applied where it is stored, and sent from there. No messages here.
 *
 * One thread.
 */
#ifndef TRAINER_SERVER_AGGREGATION_H
#define TRAINER_SERVER_AGGREGATION_H

#include "base/error.h"
#include "trainer/collective/reduction.h"
#include "trainer/optimizer.h"
#include "trainer/server/packed_state.h"
#include "trainer/timing/phase_clock.h"

#include <stddef.h>
#include <stdint.h>

struct aggregation;

/* Copies its part of the state from the optimizer; optimizer (for its rates), packing and reduction (the workers'
 * vectors; asynchronous: one each) are borrowed. ERR_NOMEM. On OK *out is yours, aggregation_free() it. */
int aggregation_new(struct aggregation **out, struct optimizer *o, const struct packing *p,
                    const struct reduction *reduction, int synchronous, struct error *e);
/* Tells the clock what updates take, adding and applying. Borrowed; NULL, the default: nothing is measured. */
void aggregation_set_clock(struct aggregation *a, struct phase_clock *clock);
void aggregation_free(struct aggregation *a); /* NULL is fine */

/* Where the next push of packet k from this worker must arrive: that packet of each of its vectors, in their order. */
real *aggregation_incoming(struct aggregation *a, int worker, size_t k);

/* Makes update number `step` (the number of updates before it) of packet k. Synchronous: with the sum of all workers'
 * pushes, ignoring `worker`; else with this worker's. Packet 0 must be first, since it has the weight. flags go with
 * the last packet. */
void aggregation_update(struct aggregation *a, int worker, size_t k, int64_t step, uint32_t flags);

/* The new values of packet k for this worker, and their number: the last packet has one more, flags as a number. Valid
 * until the packet's next update; asynchronous: until this worker's next one. */
const real *aggregation_values(const struct aggregation *a, int worker, size_t k, size_t *count);

/* The whole state, as of now (a copy, until the next call); or, synchronous, as it was before the last update of each
 * packet, until the next update. */
const real *aggregation_snapshot(struct aggregation *a, int before, size_t *count);

#endif
