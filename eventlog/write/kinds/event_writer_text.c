#include "eventlog/write/event_writer.h"

#include "eventlog/eventlog.h"

#include <stdint.h>

static int text_encode(struct wire *member, const char *const *cells, const int64_t *shape, size_t rank, size_t n,
                       struct error *e)
{
    size_t tensor = event_writer_value_tensor(member, EVENTLOG_DTYPE_STRING, shape, rank);

    for (size_t i = 0; i < n; i++) {
        if (!cells[i])
            return error_set(e, ERR_ARG, "text %zu of %zu is missing", i, n);
        wire_text_always(member, TENSOR_FIELD_STRING, cells[i]);
    }
    wire_end(member, tensor);
    return OK;
}

int eventlog_writer_text(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time, const char *text,
                         const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = {
        .tag = tag, .step = step, .wall_time = wall_time, .plugin = "text", .options = options
    };
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = text_encode(&member, &text, NULL, 0, 1, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}

int eventlog_writer_text_table(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                               const char *const *cells, size_t rows, size_t columns,
                               const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = {
        .tag = tag, .step = step, .wall_time = wall_time, .plugin = "text", .options = options
    };
    int64_t shape[] = { (int64_t)rows, (int64_t)columns };
    size_t across = columns ? columns : 1;
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc;

    if (!rows || rows > (size_t)INT32_MAX / across)
        rc = error_set(&e, ERR_ARG, "cannot write a table of %zu x %zu texts", rows, columns);
    else
        rc = text_encode(&member, cells, shape, columns ? 2 : 1, rows * across, &e);
    return event_writer_finish(w, rc, &value, &member, &e, error);
}
