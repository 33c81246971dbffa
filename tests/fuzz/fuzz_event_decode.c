/* Any bytes as an Event: the scan stays inside them, the walk finds the values that the scan counted, and the quick way
 * through the usual events sees what the long one sees. Nothing that has a field of an Event is taken for foreign. */
#include "eventlog/format/event_decode.h"
#include "eventlog/format/foreign_record.h"

#include "tests/eventlog/same_event.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* of its own, so that one byte too many is seen */
    struct event_values values;
    const struct event_value *value;
    enum foreign_kind foreign;
    struct event event;
    size_t bad = 0, count = 0, bytes = 0;

    memcpy(copy, data, size);
    foreign = foreign_record(copy, size);
    if (event_decode(copy, size, &event, &bad) != 0) {
        if (bad > size)
            abort();
        free(copy);
        return 0;
    }
    if (foreign && (event.wall_time != 0 || event.step || event.what != EVENT_NOTHING))
        abort();
    if (!same_the_long_way(copy, size, 0, &event))
        abort();
    event_values_init(&values, &event);
    while ((value = event_values_next(&values))) {
        count++;
        bytes += value->tag_length + value->plugin_length;
        if (value->tag_length > size || value->plugin_length > size)
            abort();
    }
    if (count != event.values && event.what == EVENT_SUMMARY)
        abort();
    free(copy);
    return (int)(bytes & 0);
}
