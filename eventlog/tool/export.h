/* export.h - what the formats of `eventlog export` get and give. One file a format: format_csv.c, format_json.c,
 * format_wide.c. */
#ifndef EVENTLOG_TOOL_EXPORT_H
#define EVENTLOG_TOOL_EXPORT_H

#include "base/buffer.h"
#include "eventlog/scalar_series.h"
#include "eventlog/tool/output.h"

enum export_duplicate { EXPORT_LAST, EXPORT_FIRST, EXPORT_MEAN, EXPORT_ERROR };
enum export_nonfinite { EXPORT_STRING, EXPORT_NULL, EXPORT_DROP };

struct export_run {
    const char *name;
    struct scalar_run scalars; /* only the series that are wanted have points */
};

struct export {
    struct output *out;
    uint64_t points; /* written so far */
    int float32_short, tsv, crlf, first_columns, no_run, wall_time, step_string;
    enum export_duplicate duplicate;
    enum export_nonfinite nonfinite;
};

struct export_format {
    const char *name;
    void (*begin)(struct export *x);
    /* What stands before the step in each line of a series; made once a series. */
    void (*prefix)(struct export *x, const char *run, const struct scalar_series *s, struct buffer *out);
    /* One point; from is SCALAR_FROM_*. */
    void (*point)(struct export *x, const struct buffer *prefix, const struct scalar_point *p, unsigned from);
    /* Instead of prefix and point: all runs at once, by name, series by tag or by appearance, points by step. */
    int (*runs)(struct export *x, struct export_run *runs, size_t count, struct error *e);
    void (*end)(struct export *x);
};

extern const struct export_format format_csv, format_json, format_jsonl, format_wide;

/* A CSV or TSV field, quoted or escaped as x says; bytes that are not UTF-8 become U+FFFD each. */
void export_field(const struct export *x, struct buffer *out, const char *text, size_t n);

/* The value as text, NUMBER_TEXT_MAX bytes; returns its length. */
int export_number(const struct export *x, double value, unsigned from, char *out);

/* A whole number into out, which has room for 21 bytes; returns its length. */
int export_integer(int64_t v, char *out);

static inline int export_dropped(const struct export *x, double value)
{
    return x->nonfinite == EXPORT_DROP && !(value - value == 0);
}

#endif
