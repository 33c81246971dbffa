/* same_event.h - whether two decoded events are the same, field by field. */
#ifndef TESTS_EVENTLOG_SAME_EVENT_H
#define TESTS_EVENTLOG_SAME_EVENT_H

#include "eventlog/format/event_decode.h"

#include <stdlib.h>
#include <string.h>

static inline int same_bytes(const void *a, size_t n, const void *b, size_t m)
{
    return n == m && (!n || !memcmp(a, b, n));
}

static inline int same_event(const struct event *x, const struct event *y)
{
    const struct event_value *a = &x->first, *b = &y->first;

    return !memcmp(&x->wall_time, &y->wall_time, sizeof y->wall_time) && x->step == y->step && x->what == y->what &&
           x->session == y->session && x->is_utf8 == y->is_utf8 && x->values == y->values && a->kind == b->kind &&
           a->dtype == b->dtype && a->rank == b->rank && a->is_number == b->is_number &&
           a->is_rounded == b->is_rounded && a->has_metadata == b->has_metadata && a->is_utf8 == b->is_utf8 &&
           !memcmp(&a->number, &b->number, sizeof a->number) && a->is_shown == b->is_shown &&
           !memcmp(&a->shown, &b->shown, sizeof a->shown) && x->is_damaged == y->is_damaged &&
           same_bytes(a->tag, a->tag_length, b->tag, b->tag_length) &&
           same_bytes(a->plugin, a->plugin_length, b->plugin, b->plugin_length) &&
           same_bytes(a->metadata, a->metadata_length, b->metadata, b->metadata_length) &&
           same_bytes(a->bytes, a->length, b->bytes, b->length);
}

/* event_decode() has a quick way for usual events; an unknown field before it changes nothing but the way. 1 if the
 * long way has the same result; event is not looked at unless that is OK. */
static inline int same_the_long_way(const uint8_t *data, size_t n, int result, const struct event *event)
{
    static const uint8_t unknown[] = { 0xa0, 0x06, 0x01 };
    uint8_t *copy = malloc(n + sizeof unknown);
    struct event other;
    int same;

    if (!copy)
        return 0;
    memcpy(copy, unknown, sizeof unknown);
    if (n)
        memcpy(copy + sizeof unknown, data, n);
    same = event_decode(copy, n + sizeof unknown, &other, NULL) == result && (result || same_event(event, &other));
    free(copy);
    return same;
}

#endif
