/* jsonl-series: one object of arrays per series, keys sorted, in the layout of json.dumps(). */
#include "eventlog/tool/export/export.h"

#include "base/json.h"
#include "base/number.h"

#include <string.h>

static void base64(struct buffer *out, const char *bytes, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)bytes;

    for (; n; p += n < 3 ? n : 3, n -= n < 3 ? n : 3) {
        unsigned long word = (unsigned long)p[0] << 16 | (n > 1 ? (unsigned long)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
        char four[4];

        for (int i = 0; i < 4; i++)
            four[i] = letters[word >> (18 - 6 * i) & 63];
        if (n < 3)
            four[3] = '=';
        if (n < 2)
            four[2] = '=';
        buffer_append(out, four, 4);
    }
}

enum member { STEPS, VALUES, WALL_TIMES };

static void put_numbers(struct export *x, const struct scalar_series *s, enum member member)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct eventlog_point *p = &s->points[i];
        char *room = output_room(x->out, 64), *at = stpcpy(room, i ? ", " : "");

        if (member == STEPS)
            at += number_text_integer(p->step, at);
        else
            at = member == VALUES ? export_json_number(x, at, p->value, scalar_series_from(s, i))
                                  : export_json_number(x, at, p->wall_time, 0);
        output_filled(x->out, (size_t)(at - room));
    }
}

static int series_series(struct export *x, const char *run, const struct scalar_series *s, struct error *e)
{
    struct buffer end = BUFFER_EMPTY;

    output_text(x->out, "{\"points\": {\"steps\": [");
    put_numbers(x, s, STEPS);
    output_text(x->out, "], \"values\": [");
    put_numbers(x, s, VALUES);
    output_text(x->out, "], \"wall_times\": [");
    put_numbers(x, s, WALL_TIMES);
    buffer_append_text(&end, "]}, \"run\": ");
    json_span(&end, run, strlen(run), 1);
    buffer_append_text(&end, ", \"summary_metadata\": \"");
    base64(&end, s->metadata, s->metadata_length);
    buffer_append_text(&end, "\", \"tag\": ");
    json_span(&end, s->tag, s->tag_length, 1);
    buffer_append_text(&end, "}\n");
    if (!buffer_ok(&end)) {
        buffer_release(&end);
        return error_memory(e, NULL, "for the name of a series");
    }
    output_bytes(x->out, end.data, end.length);
    buffer_release(&end);
    return OK;
}

const struct export_format format_jsonl_series = {
    .name = "jsonl-series",
    .help = "an object for each series",
    .extensions = "jsonl ndjson",
    .takes = "order=file view nonfinite nonfinite=null float32",
    .series = series_series,
};
