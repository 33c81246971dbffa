/*
 * report.h - a table that a command prints. Columns are declared once; rows are cells of numbers and texts. The report
 * writes them for people (text that fits the terminal, Markdown, a page of HTML) or for programs (CSV, a JSON document,
 * JSON lines), sorted and shortened by --sort and --top. Unsorted CSV and JSON are written row by row; everything else
 * is kept until its section, or the report, ends. One thread at a time.
 *
 * A JSON document is {"type":TYPE,"version":1,ROWS:[{KEY:CELL,...},...],...,"total":{...}}; a JSON line is one of its
 * rows.
 */
#ifndef EVENTLOG_TOOL_REPORT_REPORT_H
#define EVENTLOG_TOOL_REPORT_REPORT_H

#include "base/program/time_text.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/output_format.h"

#include <stdint.h>

/* what the numbers of a column are, for people */
enum report_kind {
    REPORT_TEXT,
    REPORT_NUMBER,
    REPORT_BYTES,   /* "17.3 MiB" */
    REPORT_SECONDS, /* "3 h 5 min" */
    REPORT_TIME,    /* seconds since 1970, written as --time says */
};

struct report_column {
    const char *key;   /* in CSV, in JSON and for --sort */
    const char *title; /* for people; NULL: the key */
    enum report_kind kind;
    int cut, leave_out; /* as in base/program/table.h */
    int if_any;         /* shown to people only if some cell is neither 0 nor missing */
    int value;          /* a value of the series: sorted best first */
};

struct report_layout {
    const char *type, *rows;             /* of the JSON document */
    const struct report_column *columns; /* count of them, in the order of a row's cells; JSON shows them all */
    size_t count;
    const char *csv, *people; /* keys, separated by blanks, in the order shown; NULL: all columns */
    int tell_left_out;        /* columns that do not fit the terminal are the user's own: report how many */
    int header_and_rows;      /* JSON is {"header": [...], "rows": [[...], ...]}, ASCII, as TensorBoard writes tables */
};

/* all zero before the command line is parsed */
struct report_options {
    struct output_options to;
    const char *sort, *time; /* time: NULL means "unix", for people "2026-11-01 10:00:05" in local time */
    int64_t top;
};

/* The formats that every report has: members of an array of struct output_format, and words of OUTPUT_OPTIONS(). */
#define REPORT_FORMATS \
    { "text", "txt", 0 }, { "csv", "csv", 0 }, { "json", "json", 0 }, { "jsonl", "jsonl ndjson", 0 }, \
        { "md", "md markdown", 0 }, \
    { \
        "html", "html htm", 0 \
    }
#define REPORT_WORDS "text|csv|json|jsonl|md|html"

/* Rows of a table, in addition to OUTPUT_OPTIONS(). */
/* clang-format off */
#define REPORT_OPTIONS(o) \
    { OPTION_TEXT, 0, "sort", &(o).sort, .argument = "KEY[:asc|:desc]", .help = "Sort by column KEY, as named in CSV " \
      "and JSON, ascending unless :desc follows; rows without a value come last" }, \
    { OPTION_INT, 0, "top", &(o).top, .argument = "N", .help = "Print only the first N rows", .minimum = 1, \
      .maximum = 1e9 }
/* clang-format on */
#define REPORT_TIME_OPTION(time, text) \
    { \
        OPTION_CHOICE, 0, "time", &(time), .help = text, .choices = "unix|iso|local|relative" \
    }

/* As output_format_settle(); on a terminal the usual format is "text". */
int report_settle(struct report_options *o, const struct output_format *formats, size_t count, const char *usual,
                  struct error *e);

struct report;

/* Opens the output. o->to.format: one of REPORT_WORDS. layout and its columns are borrowed. ERR_ARG: no column has the
 * key of --sort. On OK *out is yours: report_finish() or report_discard() it. */
int report_open(struct report **out, const struct report_layout *layout, const struct report_options *o,
                struct error *e);

/* Begins a section: people see `heading` above a table of its own, and rows are sorted and shortened within it.
 * details: lines between heading and table in text, or NULL. better: -1 if lower values are better, 1 if higher ones
 * are, else 0. Both texts are copied. */
void report_section(struct report *r, const char *heading, const char *details, int better);

/* The next cell, from left to right, row by row. Text is copied. */
void report_text(struct report *r, const char *text, size_t n);
void report_integer(struct report *r, int64_t v);
void report_count(struct report *r, uint64_t v);
void report_number(struct report *r, double v);
void report_flag(struct report *r, int v);
void report_none(struct report *r);                                  /* empty in CSV, null in JSON */
void report_word(struct report *r, const char *text);                /* a text to its NUL; NULL: none */
void report_number_if(struct report *r, int there, double v);        /* the number, or none */
void report_step(struct report *r, const struct eventlog_point *p);  /* the point's step; NULL: none */
void report_point(struct report *r, const struct eventlog_point *p); /* two cells, its step and value; NULL: none */

/* report_member: a member of the JSON document after the rows; `json` is its value as JSON. report_total: a member of
 * its "total". report_totals: several of these, as JSON text. */
void report_member(struct report *r, const char *key, const char *json);
void report_total(struct report *r, const char *key, uint64_t v);
void report_totals(struct report *r, const char *json);

/* report_for_people: 1 for text, md and html. report_is_text: 1 for text. The other two: how wide a table and a line
 * may be, 0: no limit. COLUMNS limits tables; lines are limited only on terminals. */
int report_for_people(const struct report *r);
int report_is_text(const struct report *r);
int report_table_columns(const struct report *r);
int report_line_columns(const struct report *r);

/* Writes what is kept and frees r; commits the output as gather_finish() does. Returns the exit status. */
int report_finish(struct report *r, struct scan *s, int rc, int matched, struct error *e);
void report_discard(struct report *r); /* NULL is fine */

#endif
