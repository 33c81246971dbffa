/*
 * array.h - growing arrays: a pointer, a count and a capacity that belong to the owner, who frees the pointer. The
 * macros evaluate `wanted` twice, and call nothing while there is room.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* 1: `items` has room for `wanted` items; items and capacity may have changed (the capacity doubles, so growing one by
 * one costs no more than growing once). 0: no memory, and nothing has changed. */
#define ARRAY_ROOM(items, capacity, wanted) \
    ((wanted) <= (capacity) || array_room(&(items), &(capacity), (wanted), sizeof *(items)))

/* The same, and new room is all zero. */
#define ARRAY_ROOM_ZERO(items, capacity, wanted) \
    ((wanted) <= (capacity) || array_room_zero(&(items), &(capacity), (wanted), sizeof *(items)))

/* The same; items: the address of a pointer to items of `size` bytes. */
int array_room(void *items, size_t *capacity, size_t wanted, size_t size);
int array_room_zero(void *items, size_t *capacity, size_t wanted, size_t size);

#endif
