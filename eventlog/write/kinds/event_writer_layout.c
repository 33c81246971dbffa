#include "eventlog/write/event_writer.h"

#include "eventlog/eventlog.h"

/* The custom scalars dashboard: one string that is a serialized Layout, under a tag that cannot be chosen. */

static int put_chart(struct wire *w, const struct eventlog_chart *c, struct error *e)
{
    size_t chart = wire_begin(w, 2), content;

    if (!c->tag_count == !c->margin_count)
        return error_set(e, ERR_ARG, "chart '%.80s' needs either tags or margins", c->title ? c->title : "");
    wire_text(w, 1, c->title);
    content = wire_begin(w, c->tag_count ? 2 : 3);
    for (size_t i = 0; i < c->tag_count; i++)
        wire_text_always(w, 1, c->tags[i]);
    for (size_t i = 0; i < c->margin_count; i++) {
        size_t series = wire_begin(w, 1);

        wire_text(w, 1, c->margins[i].value);
        wire_text(w, 2, c->margins[i].lower);
        wire_text(w, 3, c->margins[i].upper);
        wire_end(w, series);
    }
    wire_end(w, content);
    wire_end(w, chart);
    return OK;
}

static int layout_encode(struct wire *w, const struct eventlog_category *categories, size_t n, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < n && rc == OK; i++) {
        size_t category = wire_begin(w, 2);

        wire_text(w, 1, categories[i].title);
        for (size_t j = 0; j < categories[i].chart_count && rc == OK; j++)
            rc = put_chart(w, categories[i].charts + j, e);
        wire_integer(w, 3, categories[i].closed != 0);
        wire_end(w, category);
    }
    return rc == OK ? wire_check(w, "custom scalars layout", e) : rc;
}

int eventlog_writer_layout(struct eventlog_writer *w, double wall_time, const struct eventlog_category *categories,
                           size_t n, struct eventlog_error *error)
{
    struct event_writer_value value = { .tag = "custom_scalars__config__",
                                        .wall_time = wall_time,
                                        .plugin = "custom_scalars" };
    struct wire layout = WIRE_EMPTY, member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = layout_encode(&layout, categories, n, &e);
    size_t tensor = event_writer_value_tensor(&member, EVENTLOG_DTYPE_STRING, NULL, 0);

    wire_bytes(&member, TENSOR_FIELD_STRING, layout.bytes.data, layout.bytes.length);
    wire_end(&member, tensor);
    wire_release(&layout);
    return event_writer_finish(w, rc, &value, &member, &e, error);
}
