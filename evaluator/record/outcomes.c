#include "evaluator/record/outcomes.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void outcomes_init(struct outcomes *o, int by_step)
{
    *o = (struct outcomes){ .by_step = by_step };
}

/* The index of the first one that does not come before (name, step). */
static size_t outcomes_place(const struct outcomes *o, const char *name, int64_t step)
{
    size_t low = 0, high = o->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(o->items[middle].name, name);

        if (order < 0 || (order == 0 && o->items[middle].step < step))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(struct outcomes *o, size_t at, const struct ledger_record *r, int64_t step, struct error *e)
{
    char *name;

    if (!ARRAY_ROOM(o->items, o->capacity, o->count + 1))
        return error_memory(e, NULL, "for what became of %zu checkpoints", o->count + 1);
    if (!(name = strdup(r->checkpoint.name)))
        return error_memory(e, NULL, "for what became of %s", r->checkpoint.name);
    memmove(o->items + at + 1, o->items + at, (o->count++ - at) * sizeof *o->items);
    o->items[at] = (struct outcome){ .name = name,
                                     .step = step,
                                     .status = r->status,
                                     .digest = r->checkpoint.digest,
                                     .digest_after = r->checkpoint.digest_after,
                                     .command = r->command,
                                     .unread = r->status == LEDGER_FAILED && !r->checkpoint.has_digest };
    return OK;
}

static void take_out(struct outcomes *o, size_t i)
{
    free(o->items[i].name);
    memmove(o->items + i, o->items + i + 1, (--o->count - i) * sizeof *o->items);
}

int outcomes_note(struct outcomes *o, const struct ledger_record *r, struct error *e)
{
    const int64_t step = o->by_step ? r->checkpoint.step : 0; /* -1: it failed before its step was known */
    size_t i = outcomes_place(o, r->checkpoint.name, o->by_step ? -1 : 0);

    if (r->status != LEDGER_DONE) {
        i = outcomes_place(o, r->checkpoint.name, step);
        if (i == o->count || strcmp(o->items[i].name, r->checkpoint.name) || o->items[i].step != step)
            return insert(o, i, r, step, e);
        o->items[i].status = r->status;
        o->items[i].digest = r->checkpoint.digest;
        o->items[i].digest_after = r->checkpoint.digest_after;
        o->items[i].command = r->command;
        o->items[i].unread = o->items[i].unread && !r->checkpoint.has_digest;
        return OK;
    }
    while (i < o->count && !strcmp(o->items[i].name, r->checkpoint.name)) {
        if (o->items[i].step >= 0 && o->items[i].step != step) {
            i++;
            continue;
        }
        take_out(o, i);
    }
    return OK;
}

void outcomes_read(struct outcomes *o, const char *name)
{
    size_t i = outcomes_place(o, name, INT64_MIN);

    while (i < o->count && !strcmp(o->items[i].name, name)) {
        if (o->items[i].unread)
            take_out(o, i);
        else
            i++;
    }
}

int outcomes_is(const struct outcomes *o, const char *name, int64_t step, enum ledger_status status)
{
    const int64_t own = o->by_step ? step : 0;
    const size_t i = outcomes_place(o, name, own);

    return i < o->count && !strcmp(o->items[i].name, name) && o->items[i].step == own && o->items[i].status == status;
}

size_t outcomes_count(const struct outcomes *o, enum ledger_status status)
{
    size_t n = 0;

    for (size_t i = 0; i < o->count; i++)
        n += o->items[i].status == status;
    return n;
}

void outcomes_release(struct outcomes *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->items[i].name);
    free(o->items);
    *o = (struct outcomes){ .by_step = o->by_step };
}
