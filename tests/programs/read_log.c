/*
 * read_log PATH [points] - everything that the public reader hands out, a JSON object a line, for comparison with other
 * readers; or the points of each series, each found by its name.
 */
#include "base/json.h"
#include "eventlog/eventlog.h"

#include <stdio.h>

static void hex(struct buffer *b, const void *bytes, size_t n)
{
    buffer_append_text(b, "\"");
    for (size_t i = 0; i < n; i++)
        buffer_format(b, "%02x", ((const unsigned char *)bytes)[i]);
    buffer_append_text(b, "\"");
}

static void list(struct buffer *b, const struct eventlog_bytes *items, size_t count)
{
    buffer_append_text(b, "[");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(b, i ? "," : "");
        hex(b, items[i].data, items[i].length);
    }
    buffer_append_text(b, "]");
}

static void tensor(struct buffer *b, struct eventlog_reader *r)
{
    struct eventlog_error error = { 0 };
    struct eventlog_tensor t;

    if (eventlog_reader_tensor(r, &t, &error) != EVENTLOG_OK) {
        buffer_append_text(b, ",\"error\":");
        json_text(b, error.message);
        return;
    }
    buffer_append_text(b, ",\"shape\":[");
    for (size_t i = 0; i < t.rank; i++)
        buffer_format(b, "%s%lld", i ? "," : "", (long long)t.shape[i]);
    buffer_append_text(b, "],\"elements\":");
    hex(b, t.data, t.bytes);
    buffer_append_text(b, ",\"strings\":");
    list(b, t.strings, t.string_count);
}

static void histogram(struct buffer *b, struct eventlog_reader *r)
{
    const struct eventlog_bucket *rows;
    size_t count;

    if (eventlog_reader_histogram(r, &rows, &count, NULL) != EVENTLOG_OK)
        return;
    buffer_append_text(b, ",\"rows\":[");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(b, i ? ",[" : "[");
        json_double(b, rows[i].left);
        buffer_append_text(b, ",");
        json_double(b, rows[i].right);
        buffer_append_text(b, ",");
        json_double(b, rows[i].count);
        buffer_append_text(b, "]");
    }
    buffer_append_text(b, "]");
}

static void value(struct buffer *b, struct eventlog_reader *r, const struct eventlog_value *v)
{
    static const char *const kinds[] = { "other", "scalar", "histogram", "image", "audio", "text", "tensor" };
    struct eventlog_blobs blobs;

    buffer_append_text(b, "{\"run\":");
    json_text(b, v->series->run);
    buffer_append_text(b, ",\"tag\":");
    json_span(b, v->series->tag, v->series->tag_length, 0);
    buffer_append_text(b, ",\"plugin\":");
    json_text(b, v->series->plugin);
    buffer_append_text(b, ",\"display_name\":");
    json_text(b, v->series->display_name);
    buffer_append_text(b, ",\"description\":");
    json_text(b, v->series->description);
    buffer_append_text(b, ",\"content\":");
    hex(b, v->series->plugin_content, v->series->plugin_content_length);
    buffer_format(b, ",\"kind\":\"%s\",\"stored\":%d,\"dtype\":%d,\"step\":%lld,\"wall_time\":", kinds[v->kind],
                  (int)v->stored, v->dtype, (long long)v->step);
    json_double(b, v->wall_time);
    if (v->kind == EVENTLOG_KIND_SCALAR) {
        buffer_append_text(b, ",\"number\":");
        json_double(b, v->number);
    }
    if (v->stored == EVENTLOG_STORED_TENSOR)
        tensor(b, r);
    histogram(b, r);
    if (eventlog_reader_blobs(r, &blobs, NULL) == EVENTLOG_OK) {
        buffer_format(b, ",\"width\":%lld,\"height\":%lld,\"blobs\":", (long long)blobs.width, (long long)blobs.height);
        list(b, blobs.items, blobs.count);
    }
    buffer_append_text(b, ",\"data\":");
    hex(b, v->data, v->length);
    buffer_append_text(b, "}\n");
}

static int print_points(const char *path)
{
    struct eventlog_error error = { 0 };
    const struct eventlog_series *series;
    struct eventlog_points *p;
    size_t count;

    if (eventlog_points_read(&p, path, EVENTLOG_VIEW_ALL, NULL, &error) != EVENTLOG_OK) {
        fprintf(stderr, "read_log PATH: %s\n", error.message);
        return 2;
    }
    for (size_t i = 0; (series = eventlog_points_series(p, i)); i++) {
        const struct eventlog_point *points = eventlog_points_of(p, i, &count);
        size_t found;

        if (!eventlog_points_find(p, series->run, series->tag, &found) || found != i) {
            fprintf(stderr, "run %s, tag %s: not found\n", series->run, series->tag);
            return 2;
        }
        for (size_t k = 0; k < count; k++)
            printf("%s %s %lld %.17g\n", series->run, series->tag, (long long)points[k].step, points[k].value);
    }
    eventlog_points_free(p);
    return 0;
}

int main(int argc, char **argv)
{
    struct eventlog_error error = { 0 };
    struct buffer b = BUFFER_EMPTY;
    struct eventlog_reader *r;
    int rc;

    if (argc == 3)
        return print_points(argv[1]);
    if (argc != 2 || eventlog_reader_open(&r, argv[1], NULL, &error) != EVENTLOG_OK) {
        fprintf(stderr, "read_log PATH: %s\n", error.message);
        return 2;
    }
    while ((rc = eventlog_reader_next(r, &error)) == EVENTLOG_READ_EVENT) {
        const struct eventlog_event *event = eventlog_reader_event(r);
        const struct eventlog_value *v;

        buffer_clear(&b);
        if (event->what != EVENTLOG_EVENT_VALUES) {
            buffer_format(&b, "{\"what\":%d,\"step\":%lld,\"payload\":", (int)event->what, (long long)event->step);
            hex(&b, event->payload, event->payload_length);
            buffer_append_text(&b, "}\n");
        }
        while ((v = eventlog_reader_value(r)))
            value(&b, r, v);
        fwrite(buffer_text(&b), 1, b.length, stdout);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", error.message);
    buffer_release(&b);
    eventlog_reader_close(r);
    return rc != EVENTLOG_READ_END;
}
