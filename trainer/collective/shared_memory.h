/*
 * shared_memory.h - memory that the ranks of one host share, and counters in it that they wait for.
 *
 * Waiting is a short spin, then a futex on the counter: a waiting rank leaves its core to those who compute. But to
 * sleep and be woken takes tens of microseconds, so where each rank has a core, a shorter wait ends awake. Counters
 * only grow, modulo 2^32, so there is nothing to reset.
 */
#ifndef TRAINER_COLLECTIVE_SHARED_MEMORY_H
#define TRAINER_COLLECTIVE_SHARED_MEMORY_H

#include "base/error.h"
#include "trainer/collective/world.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct shared_counter {
    _Alignas(64) _Atomic uint32_t value; /* zero at first */
    _Atomic uint32_t waiters;
};

/* 1: the counter has reached target, or is up to 2^31 beyond it. */
int shared_counter_reached(const struct shared_counter *c, uint32_t target);
/* Sets it, and wakes those who wait. One rank posts to a counter. */
void shared_counter_post(struct shared_counter *c, uint32_t value);
/* Waits until it has reached target, for 20 ms at most; the first `spin` nanoseconds awake. 0: not yet, call again. */
int shared_counter_wait(struct shared_counter *c, uint32_t target, int64_t spin);

struct shared_memory {
    void *bytes; /* zero at first, aligned to pages */
    size_t size;
    int64_t spin; /* nanoseconds for shared_counter_wait(): few where the host has more ranks than cores for them */
};

/* n rounded up to whole pages, so that parts of the memory can begin with a page. */
size_t shared_memory_rounded(size_t n);
/* Collective. Maps `size` bytes that the first `count` ranks of a host share; host[r], r < count, is the number of rank
 * r's host, and `size` is the same on all ranks of one host. The memory has no name that could be left behind. All
 * ranks return the same error, or OK: then shared_memory_close() it. */
int shared_memory_open(struct shared_memory *m, struct world *w, const int *host, int count, size_t size,
                       struct error *e);
/* For ranks that take no part in it, while the others call shared_memory_open(). */
int shared_memory_attend(struct world *w, struct error *e);
void shared_memory_close(struct shared_memory *m); /* zeroed is fine */

#endif
