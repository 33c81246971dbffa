/*
 * packed_state.h - the part of the optimizer's state that one server holds, packed in the order of its packets: arrays
 * of packing.length elements, one after the other. First the values (weights and moving statistics), as sent back to
 * workers; then those that the optimizer keeps: slot 1 (for statistics: the biased mean), slot 2, moving averages. A
 * snapshot sends all of it. Pure.
 */
#ifndef TRAINER_SERVER_PACKED_STATE_H
#define TRAINER_SERVER_PACKED_STATE_H

#include "trainer/optimizers/optimizer.h"
#include "trainer/server/placement.h"

enum { PACKED_VALUES, PACKED_FIRST, PACKED_SECOND, PACKED_AVERAGES, PACKED_ARRAYS }; /* as struct optimizer_state */

struct packed_state {
    const struct packing *packing; /* borrowed */
    size_t length;                 /* elements of all arrays together */
    size_t begin[PACKED_ARRAYS];   /* of each array; SIZE_MAX: none */
};

/* The layout of the state of an optimizer like o in this packing. */
struct packed_state packed_state_of(struct optimizer *o, const struct packing *p);

/* Copies between the optimizer's arrays and `packed` (length elements). */
void packed_state_take(const struct packed_state *s, struct optimizer *o, real *packed);
void packed_state_give(const struct packed_state *s, struct optimizer *o, const real *packed);
/* Copies only the values of packet k, which begin at `values`, to the optimizer's arrays. */
void packed_state_give_values(const struct packed_state *s, struct optimizer *o, size_t k, const real *values);

/* Pointers to element `at` of each array. */
struct optimizer_state packed_state_at(const struct packed_state *s, real *packed, size_t at);
/* Copies packet k of each array. */
void packed_state_copy(const struct packed_state *s, size_t k, real *to, const real *from);

#endif
