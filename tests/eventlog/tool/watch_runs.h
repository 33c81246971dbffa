/* watch_runs.h - for tests of the live page: runs with points of their own. Include it behind cmocka.h. */
#ifndef TESTS_EVENTLOG_TOOL_WATCH_RUNS_H
#define TESTS_EVENTLOG_TOOL_WATCH_RUNS_H

#include "eventlog/format/wire.h"
#include "eventlog/tool/watch/watch_model.h"

#include <string.h>

static inline void add_point(struct watch_model *m, size_t run, const char *tag, int64_t step, double wall_time,
                             float value)
{
    struct wire w = WIRE_EMPTY;
    struct event event;
    size_t summary, entry;

    wire_number(&w, 1, wall_time);
    wire_integer(&w, 2, step);
    summary = wire_begin(&w, 5);
    entry = wire_begin(&w, 1);
    wire_text(&w, 1, tag);
    buffer_append_byte(&w.bytes, 2 << 3 | WIRE_FIXED32);
    buffer_append(&w.bytes, &value, sizeof value);
    wire_end(&w, entry);
    wire_end(&w, summary);
    assert_int_equal(event_decode((const uint8_t *)w.bytes.data, w.bytes.length, &event, NULL), OK);
    assert_int_equal(scalar_run_event(&m->runs[run].scalars, &event, NULL), OK);
    wire_release(&w);
}

/* Runs of these names, the last NULL, each with points of tags "acc", "loss" and "time" at steps 0 to 90, one in ten
 * seconds from 1000000 on. */
static inline struct watch_model model_of(int columns, int rows, const char *const *names)
{
    struct watch_model m = { .title = "eventlog watch logs", .columns = columns, .rows = rows };

    for (size_t i = 0; names[i]; i++) {
        assert_int_equal(watch_model_add_run(&m, names[i], NULL), OK);
        for (int k = 0; k < 10; k++) {
            add_point(&m, i, "time", 10 * k, 1000000 + 10 * k, (float)k);
            add_point(&m, i, "loss", 10 * k, 1000000 + 10 * k, 1.0f / (float)(k + 1));
            add_point(&m, i, "acc", 10 * k, 1000000 + 10 * k, (float)k / 10);
        }
    }
    assert_int_equal(watch_model_update(&m, NULL), OK);
    watch_model_lay_out(&m);
    return m;
}

#endif
