/* Any order of files, points, marks and times. What comes out must be in order of steps, hold nothing twice, and in the
 * modes that decide, one value of a series at a step. */
#include "eventlog/rewrite/log_merge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum eventlog_overlap overlap = size ? data[0] & 3 : 0;
    static char tags[MOST];
    const struct log_merge_item *items;
    struct eventlog_merged t;
    struct log_merge *m;
    size_t count, seen[256] = { 0 };
    int64_t at[256] = { 0 };
    int rc = 0;

    if (size > MOST || log_merge_new(&m, overlap, NULL) != OK)
        return 0;
    rc = log_merge_file(m, 0, "a", NULL);
    for (size_t i = 1; rc == OK && i + 2 < size; i += 3) {
        int64_t step = (int8_t)data[i + 1];
        uint8_t what = data[i];

        tags[i] = (char)(what & 0x87);
        if (what == 0xff)
            rc = log_merge_file(m, 0, "a", NULL);
        else if (what >= 0xf8)
            rc = log_merge_event(m, i, (enum log_merge_mark)(what % 5), step, NULL);
        else
            rc = log_merge_value(m, i, 0, tags + i, 1, step, data[i + 2], NULL);
    }
    if (rc == OK)
        rc = log_merge_finish(m, NULL);
    if (rc != OK && (rc != ERR_ARG || overlap != EVENTLOG_OVERLAP_ERROR))
        abort();
    items = log_merge_items(m, &count);
    t = log_merge_totals(m);
    if (rc == OK && count + t.restarted + t.doubled + t.repeated != t.values)
        abort();
    for (size_t i = 0; rc == OK && i < count; i++) {
        uint8_t tag = (uint8_t)tags[items[i].offset];

        if (i && items[i].step < items[i - 1].step)
            abort();
        if (i && !memcmp(&items[i], &items[i - 1], sizeof *items))
            abort();
        if (items[i].value == LOG_MERGE_EVENT || overlap == EVENTLOG_OVERLAP_KEEP)
            continue;
        if (seen[tag]++ && at[tag] >= items[i].step)
            abort();
        at[tag] = items[i].step;
    }
    log_merge_free(m);
    return 0;
}
