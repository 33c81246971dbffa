/*
 * clock_offset.h - how far the monotonic clocks of ranks are apart. Rank 0 sends each other rank a message and gets its
 * time back; the answer was given between the two readings of rank 0's clock, so half of the time of the round is the
 * most that the middle can be wrong by. Of several rounds the shortest counts (source: Cristian, "Probabilistic clock
 * synchronization", 1989).
 */
#ifndef TRAINER_COLLECTIVE_CLOCK_OFFSET_H
#define TRAINER_COLLECTIVE_CLOCK_OFFSET_H

#include "base/error.h"
#include "trainer/collective/world.h"

#include <stdint.h>

/* nanoseconds */
struct clock_offset {
    int64_t at;     /* rank 0's time of the round */
    int64_t offset; /* the rank's clock minus rank 0's */
    int64_t error;  /* by which offset can be wrong */
};

/* One round: rank 0's times of asking and of the answer, and the answer. same: 1: both have the same clock if nothing
 * speaks against it (the same host): the offset is 0 if that is within the error. Pure. */
struct clock_offset clock_offset_of(int64_t asked, int64_t answer, int64_t answered, int same);

/* Collective. Rank 0: out (world_size()), each rank's; others: out is not used. `doing`: what a late rank should do. */
int clock_offsets_measure(struct world *w, struct clock_offset *out, const char *doing, struct error *e);

#endif
