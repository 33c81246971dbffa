/* Any bytes as an event file: read through windows of any size, the parser must come to the same records, never go back
 * before what it gave, and end. Records that come out are decoded and gathered too. */
#include "eventlog/format/event_decode.h"
#include "eventlog/format/record.h"
#include "eventlog/read/scalar_series.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t records, damage, offset, lost;
};

static struct outcome read_all(const uint8_t *data, size_t size, size_t window, struct scalar_run *run)
{
    struct outcome o = { 0 };
    struct record_parser p;
    struct record r;
    size_t give = window;

    record_parser_init(&p, 0, 1000);
    for (;;) {
        uint64_t before = p.offset;
        size_t left = size - (size_t)p.position, have = give < left ? give : left;
        uint8_t *bytes = malloc(have ? have : 1);
        enum record_result result;

        memcpy(bytes, data + p.position, have);
        result = record_next(&p, bytes, have, size, &r);
        if (p.offset < before || p.offset > size || p.position > size)
            abort();
        if (result == RECORD_DATA) {
            struct event event;

            if (run && event_decode(r.data, r.length, &event, NULL) == 0)
                scalar_run_event(run, &event, NULL);
            o.records = o.records * 31 + r.offset + r.length;
        } else if (result == RECORD_DAMAGE) {
            o.damage = o.damage * 31 + r.offset + (uint64_t)r.damage;
        }
        free(bytes);
        give = window;
        if (result != RECORD_MORE)
            continue;
        if (!r.need)
            abort();
        if (r.need > size - p.position)
            break;
        if (give < r.need)
            give = r.need;
    }
    o.offset = p.offset;
    o.lost = p.lost;
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scalar_run run;
    struct outcome whole, pieces;

    if (!size)
        return 0;
    scalar_run_init(&run, (enum eventlog_view)(data[0] % 3), data[0] & 4, 1);
    whole = read_all(data, size, size, &run);
    scalar_run_finish(&run);
    scalar_run_sort(&run);
    for (size_t i = 0; i < run.count; i++) {
        scalar_series_sort(&run.series[i], NULL);
        for (size_t k = 1; k < run.series[i].count; k++)
            if (run.series[i].points[k - 1].step > run.series[i].points[k].step)
                abort();
    }
    scalar_run_release(&run);
    pieces = read_all(data, size, 1 + data[0] % 40, NULL);
    if (memcmp(&whole, &pieces, sizeof whole) != 0)
        abort();
    return 0;
}
