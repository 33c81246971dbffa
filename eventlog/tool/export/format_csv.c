/* csv: one row per point, `run,tag,step,value,wall_time`; also tab-separated. */
#include "eventlog/tool/export/export.h"

#include "base/bytes.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

void export_utf8(struct buffer *out, const char *text, size_t n)
{
    while (n) {
        int length = utf8_character(text, n, NULL);

        if (length)
            buffer_append(out, text, (size_t)length);
        else
            buffer_append_text(out, "\xef\xbf\xbd");
        text += length ? length : 1;
        n -= length ? (size_t)length : 1;
    }
}

static void tsv_field(struct buffer *out, const char *text, size_t n)
{
    for (size_t i = 0, from = 0; i <= n; i++) {
        const char *escape = i == n            ? ""
                             : text[i] == '\t' ? "\\t"
                             : text[i] == '\n' ? "\\n"
                             : text[i] == '\r' ? "\\r"
                             : text[i] == '\\' ? "\\\\"
                                               : NULL;

        if (!escape)
            continue;
        export_utf8(out, text + from, i - from);
        buffer_append_text(out, escape);
        from = i + 1;
    }
}

void export_field(struct buffer *out, const char *text, size_t n, int tsv)
{
    int quote = 0;

    if (tsv) {
        tsv_field(out, text, n);
        return;
    }
    for (size_t i = 0; i < n && !quote; i++)
        quote = text[i] == ',' || text[i] == '"' || text[i] == '\r' || text[i] == '\n';
    if (quote)
        buffer_append_byte(out, '"');
    for (size_t i = 0, from = 0; i <= n; i++) {
        if (i < n && text[i] != '"')
            continue;
        export_utf8(out, text + from, i - from);
        if (i < n)
            buffer_append_text(out, "\"\"");
        from = i + 1;
    }
    if (quote)
        buffer_append_byte(out, '"');
}

int export_number(const struct export *x, double value, unsigned from, char *out)
{
    return x->float32_short && from & SCALAR_FROM_FLOAT32 ? number_text_float((float)value, out)
                                                          : number_text(value, out);
}

static int csv_spelling(double value, int n, char *out)
{
    if (isnan(value))
        memcpy(out, "NaN", sizeof "NaN");
    return n;
}

int export_csv_number(const struct export *x, double value, unsigned from, char *out)
{
    return csv_spelling(value, export_number(x, value, from, out), out);
}

int export_csv_double(double value, char *out)
{
    return csv_spelling(value, number_text(value, out), out);
}

int export_time(const struct export *x, double wall_time, char *out)
{
    return x->time == TIME_UNIX ? export_csv_double(wall_time, out) : (int)strlen(time_text(x->time, wall_time, out));
}

static void csv_begin(struct export *x)
{
    output_text(x->out, x->tsv ? "run\ttag\tstep\tvalue\twall_time" : "run,tag,step,value,wall_time");
    output_text(x->out, x->line_end);
}

void export_prefix(struct export *x, const char *run, const struct scalar_series *s, struct buffer *out)
{
    export_field(out, run, strlen(run), x->tsv);
    buffer_append_byte(out, x->between);
    export_field(out, s->tag, s->tag_length, x->tsv);
    buffer_append_byte(out, x->between);
}

static void csv_point(struct export *x, const struct buffer *prefix, const struct eventlog_point *p, unsigned from)
{
    char *room, *at;

    output_bytes(x->out, prefix->data, prefix->length);
    at = room = output_room(x->out, 128);
    at += number_text_integer(p->step, at);
    *at++ = x->between;
    at += export_csv_number(x, p->value, from, at);
    *at++ = x->between;
    at += export_time(x, p->wall_time, at);
    memcpy(at, x->line_end, 2); /* "\n" with its NUL, or "\r\n" */
    at += 1 + (*at == '\r');
    output_filled(x->out, (size_t)(at - room));
}

const struct export_format format_csv = {
    .name = "csv",
    .help = "a row or object for each point",
    .extensions = "csv tsv",
    .takes = "order=file view nonfinite time float32 tsv crlf",
    .begin = csv_begin,
    .prefix = export_prefix,
    .point = csv_point,
};
