/*
 * report_write.h - writes the rows of a report (report.h) in its formats. Each function appends to a buffer; check
 * buffer_ok().
 */
#ifndef EVENTLOG_TOOL_REPORT_REPORT_WRITE_H
#define EVENTLOG_TOOL_REPORT_REPORT_WRITE_H

#include "base/buffer.h"
#include "eventlog/tool/report/report.h"

struct report_cell {
    enum {
        REPORT_CELL_NONE,
        REPORT_CELL_TEXT,
        REPORT_CELL_INTEGER,
        REPORT_CELL_COUNT,
        REPORT_CELL_NUMBER,
        REPORT_CELL_FLAG
    } type;
    union {
        const char *text; /* length bytes, then a NUL */
        int64_t integer;  /* also a flag */
        uint64_t count;
        double number;
    } as;
    size_t length;
};

struct report_row {
    uint64_t number; /* in order of arrival */
    struct report_cell cells[];
};

struct report_view {
    const struct report_layout *layout;
    const size_t *shown; /* columns in the order in which they are written; shown_count of them */
    size_t shown_count;
    enum time_style time;
    int relative; /* times are seconds */
};

/* The cell as a double; NaN if it is not a number. */
double report_cell_number(const struct report_cell *cell);

void report_write_csv_header(const struct report_view *v, struct buffer *out);
void report_write_csv(const struct report_view *v, const struct report_row *row, struct buffer *out);
/* A row as an object, or as an array for a document with header_and_rows. */
void report_write_object(const struct report_view *v, const struct report_row *row, struct buffer *out);
void report_write_array_header(const struct report_view *v, struct buffer *out);
void report_write_array(const struct report_view *v, const struct report_row *row, struct buffer *out);

/* A section for people: its heading (NULL: none) and its rows. Text is at most `columns` wide, 0: no limit; details are
 * lines below the heading; returns how many columns did not fit. */
size_t report_write_text(const struct report_view *v, const char *heading, const char *details,
                         struct report_row *const *rows, size_t count, int columns, int ascii, struct buffer *out);
void report_write_markdown(const struct report_view *v, const char *heading, struct report_row *const *rows,
                           size_t count, struct buffer *out);
/* A self-contained page; a click on a title sorts by that column. */
void report_write_html_begin(const struct report_layout *layout, struct buffer *out);
void report_write_html(const struct report_view *v, const char *heading, struct report_row *const *rows, size_t count,
                       struct buffer *out);
void report_write_html_end(struct buffer *out);

#endif
