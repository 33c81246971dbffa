/*
 * report.h - a table that a command prints. Its columns are declared once, its rows are cells of numbers and texts; the
 * report writes them for people (text that fits the terminal, Markdown, a page of HTML) or for programs (CSV, a JSON
 * document, JSON lines), sorted and cut as --sort and --top say. CSV and JSON that are not sorted are written row by
 * row; all else is kept until its section, or the report, ends. One thread at a time.
 *
 * A JSON document is {"type":TYPE,"version":1,ROWS:[{KEY:CELL,...},...],...,"total":{...}}; a line is one of its rows.
 */
#ifndef EVENTLOG_TOOL_REPORT_REPORT_H
#define EVENTLOG_TOOL_REPORT_REPORT_H

#include "base/program/time_text.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/output_format.h"

#include <stdint.h>

enum report_kind { /* what the numbers of a column are, for people */
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
    int if_any;         /* people see it only where a cell is neither 0 nor missing */
    int value;          /* of the series: sorted with the better one first */
};

struct report_layout {
    const char *type, *rows; /* of the JSON document */
    const struct report_column *columns; /* count of them: all that a row has; JSON shows them all */
    size_t count;
    const char *csv, *people; /* keys, blanks between, in the order in which they are shown; NULL: all columns */
    int tell_left_out;        /* columns that do not fit the terminal are the user's own: how many is told */
    int header_and_rows;      /* JSON is {"header": [...], "rows": [[...], ...]}, ASCII, as TensorBoard writes tables */
};

struct report_options { /* all zero before the command line is parsed */
    struct output_options to;
    const char *sort, *time; /* time: NULL is as "unix", for people "2026-11-01 10:00:05", local */
    int64_t top;
};

/* The formats that every report has: members of an array of struct output_format, and words of OUTPUT_OPTIONS(). */
#define REPORT_FORMATS \
    { "text", "txt", 0 }, { "csv", "csv", 0 }, { "json", "json", 0 }, { "jsonl", "jsonl ndjson", 0 }, \
    { "md", "md markdown", 0 }, { "html", "html htm", 0 }
#define REPORT_WORDS "text|csv|json|jsonl|md|html"

/* Rows of a table, beside OUTPUT_OPTIONS(). */
#define REPORT_OPTIONS(o) \
    { OPTION_TEXT, 0, "sort", &(o).sort, .argument = "KEY[:asc|:desc]", .help = "Sort by the column that is called " \
      "KEY in CSV and JSON, ascending unless :desc follows; rows without a value come last" }, \
    { OPTION_INT, 0, "top", &(o).top, .argument = "N", .help = "Print only the first N rows", .minimum = 1, \
      .maximum = 1e9 }
#define REPORT_TIME_OPTION(time, text) \
    { OPTION_CHOICE, 0, "time", &(time), .help = text, .choices = "unix|iso|local|relative" }

/* As output_format_settle(); on a terminal the usual format is "text". */
int report_settle(struct report_options *o, const struct output_format *formats, size_t count, const char *usual,
                  struct error *e);

struct report;

/* Opens the output. o->to.format: one of REPORT_WORDS. layout and its columns are borrowed. ERR_ARG: no column has the
 * key of --sort. On OK *out is yours: report_finish() or report_discard() it. */
int report_open(struct report **out, const struct report_layout *layout, const struct report_options *o,
                struct error *e);

/* A section begins: people read `heading` above a table of its own, and rows are sorted and cut within it. details:
 * lines that stand between them in text, or NULL. better: -1 where less is the better value, 1 where more is, 0 where
 * neither. Copied. */
void report_section(struct report *r, const char *heading, const char *details, int better);

/* The next cell, from left to right, row by row. Text is copied. */
void report_text(struct report *r, const char *text, size_t n);
void report_integer(struct report *r, int64_t v);
void report_count(struct report *r, uint64_t v);
void report_number(struct report *r, double v);
void report_flag(struct report *r, int v);
void report_none(struct report *r); /* empty in CSV, null in JSON */
void report_word(struct report *r, const char *text);         /* a text to its NUL; NULL: none */
void report_number_if(struct report *r, int there, double v); /* the number, or none */
void report_step(struct report *r, const struct scalar_point *p);  /* the point's step; NULL: none */
void report_point(struct report *r, const struct scalar_point *p); /* two cells, its step and value; NULL: none */

/* A member of the JSON document behind the rows: `json` is its value as JSON. One of its "total", or several of them as
 * they are to be written. */
void report_member(struct report *r, const char *key, const char *json);
void report_total(struct report *r, const char *key, uint64_t v);
void report_totals(struct report *r, const char *json);

/* 1 where the report is read by people: text, md, html; where it is text; how wide a table may be in it, and a line:
 * tables are cut where COLUMNS says so, lines on terminals only. 0: no limit. */
int report_for_people(const struct report *r);
int report_is_text(const struct report *r);
int report_table_columns(const struct report *r);
int report_line_columns(const struct report *r);

/* Writes what is kept and frees r; the output takes its place as gather_finish() says. Returns the status. */
int report_finish(struct report *r, struct scan *s, int rc, int matched, struct error *e);
void report_discard(struct report *r); /* NULL is fine */

#endif
