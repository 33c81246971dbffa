/* export.h - the interface of the formats of `eventlog export`, one file per format or family: format_<name>.c. */
#ifndef EVENTLOG_TOOL_EXPORT_EXPORT_H
#define EVENTLOG_TOOL_EXPORT_EXPORT_H

#include "base/buffer.h"
#include "base/program/time_text.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/tool/export/export_options.h"
#include "eventlog/tool/output.h"

enum export_duplicate { EXPORT_LAST, EXPORT_FIRST, EXPORT_MEAN, EXPORT_ERROR };
enum export_nonfinite { EXPORT_STRING, EXPORT_NULL, EXPORT_DROP, EXPORT_KEEP };

struct export_run {
    const char *name;
    struct scalar_run scalars; /* only the series that are wanted have points */
};

struct export
{
    const struct export_options *options;
    struct output *out;                  /* NULL for a format that opens files itself */
    const char *run;                     /* the current run */
    uint64_t points;                     /* written so far */
    uint64_t skipped;                    /* values read that are not points */
    int failed;                          /* something could not be read, so the file of -o must not be committed */
    uint64_t left_out;                   /* values that are not finite, and therefore not counted or written */
    uint64_t unread;                     /* values that a format should have written but could not read */
    const void *own;                     /* the options that are this format's alone */
    int float32_short, tsv, step_string; /* taken from the options */
    char between;                        /* two fields of a line, */
    const char *line_end;                /* and behind the last */
    enum export_duplicate duplicate;
    enum export_nonfinite nonfinite;
    enum time_style time;
    void *state; /* the format's own, from its start to its finish */
};

/* Appends text with U+FFFD for each byte that is not UTF-8. */
void export_utf8(struct buffer *out, const char *text, size_t n);

/* A field of CSV, quoted, or of TSV, escaped; bytes that are not UTF-8 become U+FFFD each. */
void export_field(struct buffer *out, const char *text, size_t n, int tsv);

/* The fields that a line of a series begins with, its run and its tag, each with what stands behind it. */
void export_prefix(struct export *x, const char *run, const struct scalar_series *s, struct buffer *out);

/* The value as text, NUMBER_TEXT_MAX bytes; returns its length. NaN is "nan", as TensorBoard and Prometheus's readers
 * have it. */
int export_number(const struct export *x, double value, unsigned from, char *out);

/* The same for CSV: NaN is "NaN", the one spelling with which polars, pandas, DuckDB and Arrow take a column for one of
 * numbers (polars 2.1 makes it text for "nan", and for "Infinity"; "inf" is read by all). */
int export_csv_number(const struct export *x, double value, unsigned from, char *out);
int export_csv_double(double value, char *out); /* with all digits */

/* Writes the value as JSON to out, which has room for 32 bytes; returns the end of what was written. */
char *export_json_number(const struct export *x, char *out, double value, unsigned from);

/* A wall time as --time asks for it, as text into out, TIME_TEXT_MAX bytes. Returns its length. */
int export_time(const struct export *x, double wall_time, char *out);

/* Appends the strings of a tensor: each element on its own line, or each row with tabs between its cells. 1, or 0 if
 * the value is not a tensor of strings. */
int export_value_text(const struct event_value *v, struct buffer *out);

#endif
