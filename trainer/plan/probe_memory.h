/*
 * probe_memory.h - how fast this machine adds vectors in memory: one core, and all of them together, which share the
 * memory's bus.
 */
#ifndef TRAINER_PLAN_PROBE_MEMORY_H
#define TRAINER_PLAN_PROBE_MEMORY_H

#include "base/error.h"

struct probe_memory {
    double add; /* seconds that a core takes to add a byte */
    double bus; /* bytes a second that all cores add together */
    int cores;  /* that this process may use */
};

/* Takes about a fifth of a second. ERR_NOMEM. */
int probe_memory(struct probe_memory *out, struct error *e);

#endif
