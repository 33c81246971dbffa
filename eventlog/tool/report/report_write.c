#include "eventlog/tool/report/report_write.h"

#include "base/human.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/table.h"
#include "base/text.h"
#include "eventlog/tool/export/export.h"
#include "eventlog/tool/time_option.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_TEXT_MAX = 48 };
_Static_assert((int)CELL_TEXT_MAX >= (int)TIME_TEXT_MAX && (int)CELL_TEXT_MAX >= (int)NUMBER_TEXT_MAX &&
                   (int)CELL_TEXT_MAX >= (int)HUMAN_TEXT_MAX,
               "a cell that is no text fits");

double report_cell_number(const struct report_cell *cell)
{
    return cell->type == REPORT_CELL_NUMBER                                      ? cell->as.number
           : cell->type == REPORT_CELL_COUNT                                     ? (double)cell->as.count
           : cell->type == REPORT_CELL_INTEGER || cell->type == REPORT_CELL_FLAG ? (double)cell->as.integer
                                                                                 : NAN;
}

static const char *title_of(const struct report_column *column)
{
    return column->title ? column->title : column->key;
}

/* ---- for programs ---------------------------------------------------------------------------------------------- */

/* 1 for a time that is to be written as a date. */
static int is_date(const struct report_view *v, size_t column, const struct report_cell *cell)
{
    return v->layout->columns[column].kind == REPORT_TIME && v->time != TIME_UNIX && cell->type == REPORT_CELL_NUMBER;
}

static void csv_cell(const struct report_view *v, size_t column, const struct report_cell *cell, struct buffer *out)
{
    char text[CELL_TEXT_MAX];

    switch (cell->type) {
    case REPORT_CELL_NONE: break;
    case REPORT_CELL_TEXT: export_field(out, cell->as.text, cell->length, 0); break;
    case REPORT_CELL_INTEGER: buffer_format(out, "%lld", (long long)cell->as.integer); break;
    case REPORT_CELL_COUNT: buffer_format(out, "%llu", (unsigned long long)cell->as.count); break;
    case REPORT_CELL_FLAG: buffer_append_text(out, cell->as.integer ? "True" : "False"); break;
    case REPORT_CELL_NUMBER:
        if (is_date(v, column, cell))
            time_text(v->time, cell->as.number, text);
        else
            export_csv_double(cell->as.number, text);
        buffer_append_text(out, text);
    }
}

void report_write_csv_header(const struct report_view *v, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        const char *key = v->layout->columns[v->shown[i]].key;

        buffer_append_text(out, i ? "," : "");
        export_field(out, key, strlen(key), 0);
    }
    buffer_append_byte(out, '\n');
}

void report_write_csv(const struct report_view *v, const struct report_row *row, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        buffer_append_text(out, i ? "," : "");
        csv_cell(v, v->shown[i], &row->cells[v->shown[i]], out);
    }
    buffer_append_byte(out, '\n');
}

static void json_cell(const struct report_view *v, size_t column, const struct report_cell *cell, int ascii,
                      struct buffer *out)
{
    switch (cell->type) {
    case REPORT_CELL_NONE: buffer_append_text(out, "null"); break;
    case REPORT_CELL_TEXT: json_span(out, cell->as.text, cell->length, ascii); break;
    case REPORT_CELL_INTEGER: buffer_format(out, "%lld", (long long)cell->as.integer); break;
    case REPORT_CELL_COUNT: buffer_format(out, "%llu", (unsigned long long)cell->as.count); break;
    case REPORT_CELL_FLAG: buffer_append_text(out, cell->as.integer ? "true" : "false"); break;
    case REPORT_CELL_NUMBER: time_option_json(out, is_date(v, column, cell) ? v->time : TIME_UNIX, cell->as.number);
    }
}

void report_write_object(const struct report_view *v, const struct report_row *row, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        buffer_append_byte(out, i ? ',' : '{');
        json_text(out, v->layout->columns[v->shown[i]].key);
        buffer_append_byte(out, ':');
        json_cell(v, v->shown[i], &row->cells[v->shown[i]], 0, out);
    }
    buffer_append_text(out, v->shown_count ? "}" : "{}");
}

void report_write_array_header(const struct report_view *v, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        const char *key = v->layout->columns[v->shown[i]].key;

        buffer_append_text(out, i ? ", " : "[");
        json_span(out, key, strlen(key), 1);
    }
    buffer_append_text(out, v->shown_count ? "]" : "[]");
}

void report_write_array(const struct report_view *v, const struct report_row *row, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        buffer_append_text(out, i ? ", " : "[");
        json_cell(v, v->shown[i], &row->cells[v->shown[i]], 1, out);
    }
    buffer_append_text(out, v->shown_count ? "]" : "[]");
}

/* ---- for people ------------------------------------------------------------------------------------------------ */

/* 1 if the column is shown to people: with if_any, some cell must be neither missing nor 0. */
static int is_seen(const struct report_view *v, size_t column, struct report_row *const *rows, size_t count)
{
    if (!v->layout->columns[column].if_any)
        return 1;
    for (size_t i = 0; i < count; i++) {
        const struct report_cell *cell = &rows[i]->cells[column];

        if (cell->type == REPORT_CELL_TEXT ? cell->length > 0
                                           : cell->type != REPORT_CELL_NONE && report_cell_number(cell) != 0)
            return 1;
    }
    return 0;
}

/* The columns shown to people, yours to free; NULL if memory runs out, and then out has failed. */
static size_t *seen_columns(const struct report_view *v, struct report_row *const *rows, size_t count, size_t *n,
                            struct buffer *out)
{
    size_t *seen = calloc(v->shown_count + 1, sizeof *seen);

    *n = 0;
    out->failed |= !seen;
    for (size_t i = 0; seen && i < v->shown_count; i++)
        if (is_seen(v, v->shown[i], rows, count))
            seen[(*n)++] = v->shown[i];
    return seen;
}

/* The cell as text for people, borrowed from the cell or written into small; NULL: a number, which is rounded like the
 * others in its column. */
static const char *people_text(const struct report_view *v, size_t column, const struct report_cell *cell, char *small)
{
    enum report_kind kind = v->layout->columns[column].kind;
    double number = report_cell_number(cell);

    if (cell->type == REPORT_CELL_NONE)
        return kind == REPORT_TEXT ? "" : "-";
    if (cell->type == REPORT_CELL_TEXT)
        return cell->as.text;
    if (cell->type == REPORT_CELL_FLAG)
        return cell->as.integer ? "True" : "False";
    if (kind == REPORT_BYTES)
        return human_bytes(cell->as.count, small);
    if (kind == REPORT_SECONDS || (kind == REPORT_TIME && v->relative))
        return human_duration(number, small);
    if (kind == REPORT_TIME)
        return time_text(v->time, number, small);
    if (cell->type == REPORT_CELL_NUMBER)
        return NULL;
    snprintf(small, CELL_TEXT_MAX, cell->type == REPORT_CELL_COUNT ? "%llu" : "%lld",
             (unsigned long long)cell->as.count);
    return small;
}

size_t report_write_text(const struct report_view *v, const char *heading, const char *details,
                         struct report_row *const *rows, size_t count, int columns, int ascii, struct buffer *out)
{
    size_t n, left_out = 0, *seen = seen_columns(v, rows, count, &n, out);
    struct table_column *list = calloc(n + 1, sizeof *list);
    char small[CELL_TEXT_MAX];
    struct table t;

    out->failed |= !list;
    if (heading) {
        text_append_cut(out, heading, strlen(heading), columns ? (size_t)columns : TEXT_NAME_MOST, ascii);
        buffer_append_byte(out, '\n');
    }
    buffer_append_text(out, details ? details : "");
    for (size_t k = 0; seen && list && k < n; k++) {
        const struct report_column *c = &v->layout->columns[seen[k]];

        list[k] = (struct table_column){ title_of(c), c->kind != REPORT_TEXT, c->cut, c->leave_out };
    }
    table_init(&t, list, n);
    for (size_t i = 0; seen && list && i < count; i++)
        for (size_t k = 0; k < n; k++) {
            const struct report_cell *cell = &rows[i]->cells[seen[k]];
            const char *text = people_text(v, seen[k], cell, small);

            if (text)
                table_text(&t, text, cell->type == REPORT_CELL_TEXT ? cell->length : strlen(text));
            else
                table_number(&t, cell->as.number);
        }
    if (count && list)
        left_out = table_print(&t, heading ? 2 : 0, columns, ascii, out);
    free(list);
    free(seen);
    return left_out;
}

/* How a format writes the cells shown to people. */
struct people_format {
    const char *row_begin, *row_end;
    void (*cell)(struct buffer *out, const struct report_column *column, const char *text, size_t n,
                 const struct report_cell *cell);
};

static void write_rows(const struct report_view *v, const struct people_format *f, const size_t *seen, size_t n,
                       struct report_row *const *rows, size_t count, struct buffer *out)
{
    struct human_rounding *rounding = calloc(n + 1, sizeof *rounding);
    char small[CELL_TEXT_MAX];

    out->failed |= !rounding;
    for (size_t i = 0; rounding && i < count; i++)
        for (size_t k = 0; k < n; k++)
            if (rows[i]->cells[seen[k]].type == REPORT_CELL_NUMBER)
                human_rounding_add(&rounding[k], rows[i]->cells[seen[k]].as.number);
    for (size_t i = 0; rounding && i < count; i++) {
        buffer_append_text(out, f->row_begin);
        for (size_t k = 0; k < n; k++) {
            const struct report_cell *cell = &rows[i]->cells[seen[k]];
            const char *text = people_text(v, seen[k], cell, small);

            text = text ? text : human_rounded(&rounding[k], cell->as.number, small);
            f->cell(out, &v->layout->columns[seen[k]], text,
                    cell->type == REPORT_CELL_TEXT ? cell->length : strlen(text), cell);
        }
        buffer_append_text(out, f->row_end);
    }
    free(rounding);
}

/* ---- Markdown -------------------------------------------------------------------------------------------------- */

/* Escapes text so that Markdown shows it unchanged; an underscore within a word needs no escape. */
static void append_markdown(struct buffer *out, const char *text, size_t n)
{
    struct buffer safe = BUFFER_EMPTY;
    const char *t;

    text_append_safe(&safe, text, n);
    t = buffer_text(&safe);
    for (size_t i = 0; i < safe.length; i++) {
        int inner = i && i + 1 < safe.length && isalnum((unsigned char)t[i - 1]) && isalnum((unsigned char)t[i + 1]);

        if (strchr("\\`*[]<>|~&", t[i]) || (t[i] == '_' && !inner))
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, (unsigned char)t[i]);
    }
    out->failed |= safe.failed;
    buffer_release(&safe);
}

static void markdown_cell(struct buffer *out, const struct report_column *column, const char *text, size_t n,
                          const struct report_cell *cell)
{
    (void)column;
    (void)cell;
    buffer_append_byte(out, ' ');
    append_markdown(out, text, n);
    buffer_append_text(out, " |");
}

void report_write_markdown(const struct report_view *v, const char *heading, struct report_row *const *rows,
                           size_t count, struct buffer *out)
{
    static const struct people_format format = { "|", "\n", markdown_cell };
    size_t n, *seen = seen_columns(v, rows, count, &n, out);

    if (heading) {
        buffer_append_text(out, "### ");
        append_markdown(out, heading, strlen(heading));
        buffer_append_text(out, "\n\n");
    }
    buffer_append_byte(out, '|');
    for (size_t k = 0; k < n; k++) {
        const char *title = title_of(&v->layout->columns[seen[k]]);

        markdown_cell(out, NULL, title, strlen(title), NULL);
    }
    buffer_append_text(out, "\n|");
    for (size_t k = 0; k < n; k++)
        buffer_append_text(out, v->layout->columns[seen[k]].kind == REPORT_TEXT ? " --- |" : " ---: |");
    buffer_append_byte(out, '\n');
    if (seen)
        write_rows(v, &format, seen, n, rows, count, out);
    free(seen);
}

/* ---- HTML ------------------------------------------------------------------------------------------------------ */

static void append_html(struct buffer *out, const char *text, size_t n)
{
    struct buffer safe = BUFFER_EMPTY;

    text_append_safe(&safe, text, n);
    for (const char *t = buffer_text(&safe); *t; t++)
        if (*t == '&')
            buffer_append_text(out, "&amp;");
        else if (*t == '<')
            buffer_append_text(out, "&lt;");
        else if (*t == '>')
            buffer_append_text(out, "&gt;");
        else if (*t == '"')
            buffer_append_text(out, "&quot;");
        else
            buffer_append_byte(out, (unsigned char)*t);
    out->failed |= safe.failed;
    buffer_release(&safe);
}

/* Cells carry the exact number: it is used for sorting, and shown when the pointer rests on the cell. */
static void html_cell(struct buffer *out, const struct report_column *column, const char *text, size_t n,
                      const struct report_cell *cell)
{
    char exact[NUMBER_TEXT_MAX];

    if (cell->type == REPORT_CELL_NUMBER) {
        number_text(cell->as.number, exact);
        buffer_format(out, "<td class=n data-v=\"%s\" title=\"%s\">", exact, exact);
    } else if (cell->type == REPORT_CELL_COUNT || cell->type == REPORT_CELL_INTEGER) {
        buffer_format(out,
                      cell->type == REPORT_CELL_COUNT ? "<td class=n data-v=\"%llu\">" : "<td class=n data-v=\"%lld\">",
                      (unsigned long long)cell->as.count);
    } else {
        buffer_append_text(out, column->kind == REPORT_TEXT ? "<td>" : "<td class=n>");
    }
    append_html(out, text, n);
    buffer_append_text(out, "</td>");
}

void report_write_html_begin(const struct report_layout *layout, struct buffer *out)
{
    buffer_append_text(out, "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
                            "<meta name=viewport content=\"width=device-width\">\n");
    buffer_format(out, "<title>eventlog %s</title>\n", layout->type);
    buffer_append_text(out, "<style>\n"
                            ":root { color-scheme: light dark; font: 14px system-ui, sans-serif; }\n"
                            "table { border-collapse: collapse; margin: 0 0 2em; }\n"
                            "th, td { padding: .25em .75em; border-bottom: 1px solid #8884; text-align: left; }\n"
                            "th { cursor: pointer; position: sticky; top: 0; background: Canvas; }\n"
                            ".n { text-align: right; font-variant-numeric: tabular-nums; }\n"
                            "</style>\n");
}

void report_write_html(const struct report_view *v, const char *heading, struct report_row *const *rows, size_t count,
                       struct buffer *out)
{
    static const struct people_format format = { "<tr>", "</tr>\n", html_cell };
    size_t n, *seen = seen_columns(v, rows, count, &n, out);

    if (heading) {
        buffer_append_text(out, "<h2>");
        append_html(out, heading, strlen(heading));
        buffer_append_text(out, "</h2>\n");
    }
    buffer_append_text(out, "<table>\n<thead><tr>");
    for (size_t k = 0; k < n; k++) {
        const struct report_column *column = &v->layout->columns[seen[k]];

        buffer_append_text(out, column->kind == REPORT_TEXT ? "<th>" : "<th class=n>");
        append_html(out, title_of(column), strlen(title_of(column)));
        buffer_append_text(out, "</th>");
    }
    buffer_append_text(out, "</tr></thead>\n<tbody>\n");
    if (seen)
        write_rows(v, &format, seen, n, rows, count, out);
    buffer_append_text(out, "</tbody>\n</table>\n");
    free(seen);
}

void report_write_html_end(struct buffer *out)
{
    /* A click sorts, another one reverses the order; cells without a number stay last. */
    buffer_append_text(
        out, "<script>\n"
             "for (const th of document.querySelectorAll('th')) th.onclick = () => {\n"
             "  const body = th.closest('table').tBodies[0], i = th.cellIndex;\n"
             "  const up = th.dataset.up = th.dataset.up == 1 ? 0 : 1;\n"
             "  const value = row => { const v = row.cells[i].dataset.v;\n"
             "    return v === undefined ? NaN : Number(v.replace('inf', 'Infinity')); };\n"
             "  const order = (a, b) => { const x = value(a), y = value(b);\n"
             "    if (isNaN(x) != isNaN(y)) return isNaN(x) - isNaN(y);\n"
             "    if (isNaN(x)) return (up ? 1 : -1) * a.cells[i].textContent.localeCompare(b.cells[i].textContent,\n"
             "      undefined, { numeric: true });\n"
             "    return x == y ? 0 : (up ? 1 : -1) * (x < y ? -1 : 1); };\n"
             "  body.append(...[...body.rows].sort(order));\n"
             "};\n"
             "</script>\n</html>\n");
}
