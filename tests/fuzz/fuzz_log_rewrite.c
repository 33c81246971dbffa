/* Any bytes as a record: the first byte says what becomes of its values. What comes out of a sound record must be sound,
 * hold the values that were kept, and come out the same when it goes in again. */
#include "eventlog/rewrite/log_rewrite.h"

#include "eventlog/check/log_check.h"
#include "eventlog/format/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int choose(void *context, const struct event *event, const struct event_value *v, size_t number,
                  struct log_rewrite_choice *choice, struct error *e)
{
    const uint8_t *rule = context;

    (void)event;
    (void)e;
    choice->keep = !(*rule >> (number & 3) & 1);
    if (v && (*rule >> (4 + (number & 3)) & 1)) {
        choice->tag = "another name";
        choice->tag_length = *rule & 1 ? 12 : 0;
    }
    return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer out = BUFFER_EMPTY, again = BUFFER_EMPTY;
    struct log_rewrite *r;
    struct event event;
    uint8_t all = 0;
    size_t place;

    if (size < 1 || log_check_data(data + 1, size - 1, &place) != LOG_KINDS ||
        event_decode(data + 1, size - 1, &event, &place) != OK || log_rewrite_new(&r, NULL) != OK)
        return 0;
    if (log_rewrite_record(r, data + 1, size - 1, &event, choose, (void *)(uintptr_t)data, &out, NULL) != OK)
        abort();
    if (out.length) {
        const uint8_t *record = (const uint8_t *)out.data;
        size_t n = out.length - RECORD_OVERHEAD, values = event.values;
        double wall = event.wall_time;
        int64_t step = event.step;

        if (log_check_data(record + RECORD_HEADER, n, &place) != LOG_KINDS ||
            event_decode(record + RECORD_HEADER, n, &event, &place) != OK || event.values > values ||
            event.step != step || memcmp(&event.wall_time, &wall, sizeof wall) != 0)
            abort();
        if (log_rewrite_record(r, record + RECORD_HEADER, n, &event, choose, &all, &again, NULL) != OK ||
            again.length != out.length || memcmp(again.data, out.data, out.length) != 0)
            abort();
    }
    buffer_release(&out);
    buffer_release(&again);
    log_rewrite_free(r);
    return 0;
}
