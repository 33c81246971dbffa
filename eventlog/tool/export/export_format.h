/*
 * export_format.h - the table of formats that `eventlog export` writes. A format is one struct export_format in
 * format_<name>.c and one row below; parser, --help and checks come from there.
 */
#ifndef EVENTLOG_TOOL_EXPORT_EXPORT_FORMAT_H
#define EVENTLOG_TOOL_EXPORT_EXPORT_FORMAT_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/program/options.h"

#include <stddef.h>

struct event;
struct event_value;
struct export; /* export.h */
struct export_options;
struct export_run;
struct eventlog_point;
struct scalar_run;
struct scalar_series;

/* Options that one format alone has: memory for a struct of its file. */
enum { EXPORT_OWN_SIZE = 32, EXPORT_OWN_ROWS = 6 };
struct export_own {
    _Alignas(max_align_t) unsigned char bytes[EXPORT_OWN_SIZE];
};

/* How a format is called: begin, then prefix and point, then end; or start, then series, then finish; or runs alone. A
 * format for values other than points has value and run_read, and counts what it writes in x->points. */
struct export_format {
    const char *name;       /* for --format */
    const char *help;       /* what it writes; formats with the same text are listed together. NULL: --format does not
                               choose it */
    const char *extensions; /* "jsonl ndjson": of FILE; the first format in the table that has it is chosen */
    int binary;             /* no text: FILE.gz is refused */
    const char *takes;      /* options that apply to it but not to all, blanks between; order=file, nonfinite=null */
    int by_step;            /* its rows are always sorted by step, so there is no order=file */
    const char *lacks;      /* what this build lacks to write it; NULL: nothing */
    /* Sets `own`, zero before, to its defaults and `rows` (at most EXPORT_OWN_ROWS) to options of this format alone,
     * whose values are in `own`. Returns how many. NULL: none. Help that begins with ": " gets the name before it. */
    size_t (*rows)(struct option *rows, void *own);
    /* Whether the options go together; may set `duplicate` and `columns`, which are NULL where they were not given. */
    int (*check)(struct export_options *o, const void *own, struct error *e);
    int opens_files;   /* what -o names is the format's business */
    int reading_order; /* series: points as they were read, not by step */
    void (*begin)(struct export *x);
    /* What stands before the step in each line of a series; made once per series. NULL: nothing. */
    void (*prefix)(struct export *x, const char *run, const struct scalar_series *s, struct buffer *out);
    /* One point; from is SCALAR_FROM_*. */
    void (*point)(struct export *x, const struct buffer *prefix, const struct eventlog_point *p, unsigned from);
    void (*end)(struct export *x);
    /* All runs at once, by name, series by tag or by appearance, points by step. */
    int (*runs)(struct export *x, struct export_run *runs, size_t count, struct error *e);
    int (*start)(struct export *x, struct error *e);
    /* A series with points, of a run whose series come one after the other, by tag. */
    int (*series)(struct export *x, const char *run, const struct scalar_series *s, struct error *e);
    /* Frees what start took; called after an error, too, with commit 0. */
    int (*finish)(struct export *x, int commit, struct error *e);
    /* A value that is no point, while the run is read; any may be NULL. run_read: the values of this run are complete,
     * run_again: forget them, the run is read from its start. */
    int (*value)(struct export *x, const struct scalar_series *s, const struct event *event,
                 const struct event_value *value, struct error *e);
    int (*run_read)(struct export *x, const char *run, const struct scalar_run *scalars, struct error *e);
    void (*run_again)(struct export *x);
};

/* The table: a row is the end of a format_NAME, in the order of --help. */
#define EXPORT_FORMATS(ROW) \
    ROW(csv) \
    ROW(wide) \
    ROW(json) \
    ROW(jsonl) \
    ROW(jsonl_series) \
    ROW(tb_csv) \
    ROW(tb_json) \
    ROW(reduce) \
    ROW(prom) \
    ROW(sqlite) \
    ROW(histograms) \
    ROW(media)

#define EXPORT_FORMAT_ONE(name) +1
enum { EXPORT_FORMAT_COUNT = 0 EXPORT_FORMATS(EXPORT_FORMAT_ONE) };
#undef EXPORT_FORMAT_ONE
#define EXPORT_FORMAT_DECLARATION(name) extern const struct export_format format_##name;
EXPORT_FORMATS(EXPORT_FORMAT_DECLARATION)
#undef EXPORT_FORMAT_DECLARATION

#endif
