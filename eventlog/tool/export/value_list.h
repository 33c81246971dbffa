/* value_list.h - keeps the values of a run until all have been read, for formats that write them in another order. */
#ifndef EVENTLOG_TOOL_EXPORT_VALUE_LIST_H
#define EVENTLOG_TOOL_EXPORT_VALUE_LIST_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct value_item {
    size_t series; /* scalar_series.number */
    int64_t step;
    double wall_time;
    char *bytes; /* length of them, a copy */
    size_t length;
};

struct value_list {
    struct value_item *items; /* in reading order */
    size_t count, capacity;
};

int value_list_add(struct value_list *l, size_t series, int64_t step, double wall_time, const void *bytes, size_t n,
                   struct error *e);
void value_list_release(struct value_list *l); /* empty again */

#endif
