#include "eventlog/tool/export/value_list.h"

#include <stdlib.h>
#include <string.h>

int value_list_add(struct value_list *l, size_t series, int64_t step, double wall_time, const void *bytes, size_t n,
                   struct error *e)
{
    struct value_item *item;
    char *copy;

    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 16;

        if (!(item = realloc(l->items, capacity * sizeof *item)))
            return error_set(e, ERR_NOMEM, "out of memory for %zu values", capacity);
        l->items = item;
        l->capacity = capacity;
    }
    if (!(copy = malloc(n + 1)))
        return error_set(e, ERR_NOMEM, "out of memory for a value of %zu bytes", n);
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
