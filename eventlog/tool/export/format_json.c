/* jsonl: one object per point; json: the same objects in one array. */
#include "eventlog/tool/export/export.h"

#include "base/json.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

static void prefix(struct export *x, const char *run, const struct scalar_series *s, struct buffer *out)
{
    buffer_append_text(out, "{\"run\":");
    json_span(out, run, strlen(run), 0);
    buffer_append_text(out, ",\"tag\":");
    json_span(out, s->tag, s->tag_length, 0);
    buffer_append_text(out, x->step_string ? ",\"step\":\"" : ",\"step\":");
}

char *export_json_number(const struct export *x, char *at, double v, unsigned from)
{
    if (isfinite(v))
        return at + export_number(x, v, from, at);
    if (x->nonfinite == EXPORT_NULL)
        return stpcpy(at, "null");
    return stpcpy(at, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

/* The same as JSON. out has room for TIME_TEXT_MAX + 2 bytes; returns the end of what was written. */
static char *put_time(const struct export *x, char *at, double wall_time)
{
    if (x->time == TIME_UNIX || !isfinite(wall_time))
        return export_json_number(x, at, wall_time, 0);
    *at++ = '"';
    at += export_time(x, wall_time, at);
    *at++ = '"';
    return at;
}

static void object(struct export *x, const struct buffer *start, const struct eventlog_point *p, unsigned from)
{
    char *room, *at;

    output_bytes(x->out, start->data, start->length);
    at = room = output_room(x->out, 256);
    at += number_text_integer(p->step, at);
    at = stpcpy(at, x->step_string ? "\",\"wall_time\":" : ",\"wall_time\":");
    at = put_time(x, at, p->wall_time);
    at = stpcpy(at, ",\"value\":");
    at = export_json_number(x, at, p->value, from);
    *at++ = '}';
    output_filled(x->out, (size_t)(at - room));
}

static void jsonl_point(struct export *x, const struct buffer *start, const struct eventlog_point *p, unsigned from)
{
    object(x, start, p, from);
    output_text(x->out, "\n");
}

/* Objects with ",\n" between; an empty array is "[]". */
static void json_point(struct export *x, const struct buffer *start, const struct eventlog_point *p, unsigned from)
{
    output_text(x->out, x->points ? ",\n" : "[\n");
    object(x, start, p, from);
}

static void json_end(struct export *x)
{
    output_text(x->out, x->points ? "\n]\n" : "[]\n");
}

const struct export_format format_jsonl = {
    .name = "jsonl",
    .help = "a row or object for each point",
    .extensions = "jsonl ndjson",
    .takes = "order=file view nonfinite nonfinite=null time step float32",
    .prefix = prefix,
    .point = jsonl_point,
};
const struct export_format format_json = {
    .name = "json",
    .help = "a row or object for each point",
    .extensions = "json",
    .takes = "order=file view nonfinite nonfinite=null time step float32",
    .prefix = prefix,
    .point = json_point,
    .end = json_end,
};
