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
#include "trainer/optimizers/optimizer.h"
#include "trainer/server/packed_state.h"
#include "trainer/timing/phase_clock.h"

#include <stddef.h>
#include <stdint.h>

struct aggregation;
struct gradient_parts;

/* Which pushes make an update. */
enum aggregation_kind {
    AGGREGATION_TOGETHER, /* those of all workers */
    AGGREGATION_CHOSEN,   /* those of some workers */
};

/* What is clipped, if the optimizer has a clip_norm. */
enum aggregation_clipping {
    AGGREGATION_CLIPS_NOTHING,
    AGGREGATION_CLIPS_SUMS,   /* the sum, once the norm of all servers' parts is known */
    AGGREGATION_CLIPS_PUSHES, /* each push, by a factor that comes with it, before the elements of its packet 0 */
};

/* Copies its part of the state from the optimizer; optimizer (for its rates), packing and reduction (the workers'
 * vectors; CHOSEN: one each) are borrowed. ERR_NOMEM. On OK *out is yours, aggregation_free() it. */
int aggregation_new(struct aggregation **out, struct optimizer *o, const struct packing *p,
                    const struct reduction *reduction, enum aggregation_kind kind, struct error *e);
/* Tells the clock what updates take, adding and applying. Borrowed; NULL, the default: nothing is measured. */
void aggregation_set_clock(struct aggregation *a, struct phase_clock *clock);
/* Call before anything comes; the default: nothing is clipped. The optimizer then gets each update's factor, and with
 * SUMS its weights follow those of this part, too. ERR_NOMEM. */
int aggregation_clip(struct aggregation *a, enum aggregation_clipping clipping, struct error *e);
void aggregation_free(struct aggregation *a); /* NULL is fine */

/* Where a push of packet k must arrive, that packet of each of the worker's vectors, in their order. */
real *aggregation_incoming(struct aggregation *a, int worker, size_t k);

/* Makes update number `step` (the number of updates before it) of packet k, with the sum of all workers' pushes;
 * CHOSEN: of these workers', in this order (count >= 1). Packet 0 must be first, since it has the weight. TOGETHER:
 * flags go with the last packet. */
void aggregation_update(struct aggregation *a, const int *workers, int count, size_t k, int64_t step, uint32_t flags);
/* CHOSEN: sets the values of packet k for this worker to the current ones. TOGETHER: does nothing. */
void aggregation_answer(struct aggregation *a, int worker, size_t k, uint32_t flags);

/*
 * CLIPS_SUMS: an update in three steps instead. First adds packet after packet, packet 0 first, as above. Once all are
 * added, the sums of squares of this server's parts, but for those of tables if these are not in packets. Then, once
 * the optimizer knows the norm (optimizer_clip()), updates packet after packet; CHOSEN: flags are ignored.
 */
void aggregation_add(struct aggregation *a, const int *workers, int count, size_t k);
void aggregation_squares(const struct aggregation *a, int64_t step, const struct gradient_parts *parts, int server,
                         int tables_elsewhere, double *sums);
void aggregation_apply(struct aggregation *a, size_t k, int64_t step, uint32_t flags);
/* CLIPS_PUSHES: the factor of this worker's push, whose packet 0 has come. */
real aggregation_factor(const struct aggregation *a, int worker);

/* The new values of packet k for this worker, and their number: the last packet has one more, flags as a number, and
 * with CLIPS_SUMS another one, the norm of the gradient before clipping. Valid until the packet's next update; CHOSEN:
 * until the worker's next answer. */
const real *aggregation_values(const struct aggregation *a, int worker, size_t k, size_t *count);

/* The whole state, as of now (a copy, until the next call); or, TOGETHER, as it was before the last update of each
 * packet, until the next update. */
const real *aggregation_snapshot(struct aggregation *a, int before, size_t *count);

#endif
