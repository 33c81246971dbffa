#include "eventlog/tool/export/value_list.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int value_list_add(struct value_list *l, size_t series, int64_t step, double wall_time, const void *bytes, size_t n,
                   struct error *e)
{
    char *copy;

    if (!ARRAY_ROOM(l->items, l->capacity, l->count + 1))
        return error_memory(e, NULL, "for %zu values", l->count + 1);
    if (!(copy = malloc(n + 1)))
        return error_memory(e, NULL, "for a value of %zu bytes", n);
    if (n)
        memcpy(copy, bytes, n);
    l->items[l->count++] = (struct value_item){ series, step, wall_time, copy, n };
    return OK;
}

void value_list_release(struct value_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].bytes);
    free(l->items);
    *l = (struct value_list){ NULL, 0, 0 };
}
