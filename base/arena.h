/*
 * arena.h - scratch memory that is given back all at once. An arena is a span of somebody else's memory; taking from
 * it moves `next`. A function that gets the arena by value gives everything back by returning.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

enum { ARENA_ALIGNMENT = 64 }; /* a cache line and an AVX-512 register */

struct arena {
    char *next, *end;
};

/* Makes an arena over size fresh bytes; *memory is yours to free(). Returns 0 and touches nothing without memory. */
int arena_new(struct arena *a, void **memory, size_t size);

/* size bytes, aligned to ARENA_ALIGNMENT, not cleared; NULL when the arena has no room for them. */
void *arena_take(struct arena *a, size_t size);

/* What arena_take(size) uses up, alignment included: add these to size an arena. */
size_t arena_need(size_t size);

#endif
