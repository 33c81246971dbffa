#include "evaluator/keep/best_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int best_list_init(struct best_list *l, size_t limit, int minimum, int by_step, struct error *e)
{
    *l = (struct best_list){ .limit = limit, .minimum = minimum, .by_step = by_step };
    if (!(l->items = calloc(limit + 1, sizeof *l->items)))
        return error_memory(e, NULL, "for the %zu best checkpoints", limit);
    return OK;
}

void best_list_release(struct best_list *l)
{
    free(l->items);
    *l = (struct best_list){ .limit = 0 };
}

const struct best_entry *best_list_at(const struct best_list *l, size_t i)
{
    return i < l->count ? &l->items[i] : NULL;
}

int best_list_same(const struct best_list *l, const struct checkpoint_identity *a, const struct checkpoint_identity *b)
{
    return !strcmp(a->name, b->name) && (!l->by_step || a->step == b->step);
}

static int better(const struct best_list *l, double a, double b)
{
    return l->minimum ? a < b : a > b;
}

void best_list_add(struct best_list *l, const struct best_entry *entry)
{
    size_t i = 0, old = 0;

    if (isnan(entry->value))
        return;
    while (old < l->count && !best_list_same(l, &l->items[old].checkpoint, &entry->checkpoint))
        old++;
    if (old < l->count && !better(l, entry->value, l->items[old].value))
        return;
    if (old < l->count)
        memmove(l->items + old, l->items + old + 1, (--l->count - old) * sizeof *l->items);
    while (i < l->count && !better(l, entry->value, l->items[i].value))
        i++;
    memmove(l->items + i + 1, l->items + i, (l->count - i) * sizeof *l->items);
    l->items[i] = *entry;
    if (l->count < l->limit)
        l->count++;
}
