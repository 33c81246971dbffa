#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4 };

int array_room(void *items, size_t *capacity, size_t wanted, size_t size)
{
    size_t more = *capacity < LEAST ? LEAST : *capacity;
    void *old, *grown;

    if (wanted <= *capacity)
        return 1;
    while (more < wanted && more <= SIZE_MAX / 2)
        more *= 2;
    if (more < wanted || more > SIZE_MAX / size)
        return 0;
    memcpy(&old, items, sizeof old); /* whatever it points to */
    if (!(grown = realloc(old, more * size)))
        return 0;
    memcpy(items, &grown, sizeof grown);
    *capacity = more;
    return 1;
}

int array_room_zero(void *items, size_t *capacity, size_t wanted, size_t size)
{
    const size_t before = *capacity;
    char *grown;

    if (!array_room(items, capacity, wanted, size))
        return 0;
    memcpy(&grown, items, sizeof grown);
    if (*capacity > before)
        memset(grown + before * size, 0, (*capacity - before) * size);
    return 1;
}
