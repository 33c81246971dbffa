#include "trainer/timing/span_log.h"

#include <stdlib.h>
#include <string.h>

enum { SPAN_SHORTEST = 1000 }; /* nanoseconds */

int span_log_init(struct span_log *l, size_t room, struct error *e)
{
    memset(l, 0, sizeof *l);
    if (!(l->spans = calloc(room, sizeof *l->spans)))
        return error_memory(e, NULL, "for a trace of %zu slices", room);
    l->room = room;
    return OK;
}

void span_log_release(struct span_log *l)
{
    free(l->spans);
    memset(l, 0, sizeof *l);
}

void span_log_add(struct span_log *l, const struct span *s)
{
    struct span *last = l->added ? &l->spans[(l->added - 1) % l->room] : NULL;

    if (s->kind == SPAN_PHASE && s->end - s->begin < SPAN_SHORTEST)
        return;
    if (last && last->kind == SPAN_PHASE && s->kind == SPAN_PHASE && last->phase == s->phase &&
        last->bucket == s->bucket && last->step == s->step && s->begin - last->end < SPAN_SHORTEST)
        last->end = s->end;
    else
        l->spans[l->added++ % l->room] = *s;
}

size_t span_log_count(const struct span_log *l)
{
    return l->added < l->room ? (size_t)l->added : l->room;
}

const struct span *span_log_at(const struct span_log *l, size_t i)
{
    return &l->spans[(l->added - span_log_count(l) + i) % l->room];
}
