#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

size_t arena_need(size_t size)
{
    return (size + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
}

int arena_new(struct arena *a, void **memory, size_t size)
{
    void *p = NULL;

    if (posix_memalign(&p, ARENA_ALIGNMENT, arena_need(size ? size : 1)))
        return 0;
    *memory = p;
    a->next = p;
    a->end = (char *)p + arena_need(size ? size : 1);
    return 1;
}

void *arena_take(struct arena *a, size_t size)
{
    size_t need = arena_need(size);
    char *p = a->next;

    if (need < size || need > (size_t)(a->end - a->next))
        return NULL;
    a->next += need;
    return p;
}
