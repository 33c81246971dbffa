#include "eventlog/tool/report/report.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/human.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "eventlog/tool/export/export.h"
#include "eventlog/tool/time_option.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

enum { CELL_TEXT_MAX = 48 };
_Static_assert((int)CELL_TEXT_MAX >= (int)TIME_TEXT_MAX && (int)CELL_TEXT_MAX >= (int)NUMBER_TEXT_MAX &&
                   (int)CELL_TEXT_MAX >= (int)HUMAN_TEXT_MAX,
               "a cell that is no text fits");

/* NaN if it is not a number. */
static double cell_number(const struct report_cell *cell)
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

static void write_csv_header(const struct report_view *v, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        const char *key = v->layout->columns[v->shown[i]].key;

        buffer_append_text(out, i ? "," : "");
        export_field(out, key, strlen(key), 0);
    }
    buffer_append_byte(out, '\n');
}

static void write_csv(const struct report_view *v, const struct report_row *row, struct buffer *out)
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

/* A row as an object, or as an array for a document with header_and_rows. */
static void write_object(const struct report_view *v, const struct report_row *row, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        buffer_append_byte(out, i ? ',' : '{');
        json_text(out, v->layout->columns[v->shown[i]].key);
        buffer_append_byte(out, ':');
        json_cell(v, v->shown[i], &row->cells[v->shown[i]], 0, out);
    }
    buffer_append_text(out, v->shown_count ? "}" : "{}");
}

static void write_array_header(const struct report_view *v, struct buffer *out)
{
    for (size_t i = 0; i < v->shown_count; i++) {
        const char *key = v->layout->columns[v->shown[i]].key;

        buffer_append_text(out, i ? ", " : "[");
        json_span(out, key, strlen(key), 1);
    }
    buffer_append_text(out, v->shown_count ? "]" : "[]");
}

static void write_array(const struct report_view *v, const struct report_row *row, struct buffer *out)
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
                                           : cell->type != REPORT_CELL_NONE && cell_number(cell) != 0)
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
    double number = cell_number(cell);

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

/* A section: its heading (NULL: none) and its rows, at most `columns` wide, 0: no limit; details are lines below the
 * heading. Returns how many columns did not fit. */
static size_t write_text(const struct report_view *v, const char *heading, const char *details,
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

static void write_markdown(const struct report_view *v, const char *heading, struct report_row *const *rows,
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

/* A self-contained page; a click on a title sorts by that column. */
static void write_html_begin(const struct report_layout *layout, struct buffer *out)
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

static void write_html(const struct report_view *v, const char *heading, struct report_row *const *rows, size_t count,
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

static void write_html_end(struct buffer *out)
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

enum { KEPT_MORE = 4096 }; /* how many rows beyond twice --top are kept before cutting */

enum format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, FORMAT_JSONL, FORMAT_MARKDOWN, FORMAT_HTML };
static const char *const names[] = { "text", "csv", "json", "jsonl", "md", "html" };

struct report {
    struct report_view view;
    struct output *out;
    enum format format;
    int sorted, directed, descending; /* --sort: by `key`; directed: with :asc or :desc */
    size_t key;
    uint64_t top, limit; /* --top; how many rows the section may still print as they come */
    int better;          /* of the section */
    char *heading, *details;
    uint64_t sections, printed; /* so far; printed: rows */
    struct report_cell *cells;  /* of the current row; their texts are offsets in `texts` */
    size_t filled;
    struct buffer texts;
    struct report_row **rows; /* kept, of this section */
    size_t count, capacity;
    uint64_t number;
    struct buffer line, members, total;
    size_t left_out;
    int failed; /* out of memory */
    size_t shown[];
};

/* ---- the command line ------------------------------------------------------------------------------------------ */

int report_settle(struct report_options *o, const struct output_format *formats, size_t count, const char *usual,
                  struct error *e)
{
    int to_terminal = (!o->to.path || !strcmp(o->to.path, "-")) && isatty(STDOUT_FILENO);

    return output_format_settle(&o->to, formats, count, to_terminal ? "text" : usual, e);
}

/* KEY, KEY:asc or KEY:desc; another colon belongs to the key. */
static int parse_sort(struct report *r, const char *text, struct error *e)
{
    const struct report_layout *layout = r->view.layout;
    size_t n = strlen(text);
    struct buffer list = BUFFER_EMPTY;

    if (n > 4 && !strcmp(text + n - 4, ":asc")) {
        n -= 4;
        r->directed = 1;
    } else if (n > 5 && !strcmp(text + n - 5, ":desc")) {
        n -= 5;
        r->directed = r->descending = 1;
    }
    for (size_t i = 0; i < layout->count; i++)
        if (strlen(layout->columns[i].key) == n && !memcmp(layout->columns[i].key, text, n)) {
            r->sorted = 1;
            r->key = i;
            return OK;
        }
    for (size_t i = 0; i < layout->count; i++)
        buffer_format(&list, "%s%s", i ? ", " : "", layout->columns[i].key);
    error_set(e, ERR_ARG, "--sort: no column is called '%.80s'; use one of %.300s", text, buffer_text(&list));
    buffer_release(&list);
    return ERR_ARG;
}

/* The columns to write: those named by the list, or all. */
static void choose_columns(struct report *r, const char *keys)
{
    const struct report_layout *layout = r->view.layout;

    for (size_t i = 0; !keys && i < layout->count; i++)
        r->shown[r->view.shown_count++] = i;
    for (const char *at = keys ? keys : ""; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " "), i = 0;

        while (strlen(layout->columns[i].key) != n || memcmp(layout->columns[i].key, at, n) != 0)
            i++; /* the layout's own keys */
        r->shown[r->view.shown_count++] = i;
        at += n;
    }
    r->view.shown = r->shown;
}

static enum time_style time_style_of(const struct report *r, const char *word)
{
    return !word && report_for_people(r) ? TIME_SHORT : time_option_style(word);
}

int report_open(struct report **out, const struct report_layout *layout, const struct report_options *o,
                struct error *e)
{
    struct report *r = calloc(1, sizeof *r + (layout->count + 1) * sizeof *r->shown);
    int rc;

    *out = NULL;
    if (!r || !(r->cells = calloc(layout->count + 1, sizeof *r->cells))) {
        free(r);
        return error_memory(e, NULL, "for a table of %zu columns", layout->count);
    }
    while (strcmp(names[r->format], o->to.format) != 0)
        r->format++;
    r->view.layout = layout;
    r->view.time = time_style_of(r, o->time);
    r->view.relative = o->time && !strcmp(o->time, "relative");
    r->top = r->limit = o->top ? (uint64_t)o->top : UINT64_MAX;
    choose_columns(r, r->format == FORMAT_CSV ? layout->csv : report_for_people(r) ? layout->people : NULL);
    if ((o->sort && (rc = parse_sort(r, o->sort, e)) != OK) ||
        (rc = output_open(&r->out, o->to.path, o->to.force, e)) != OK) {
        report_discard(r);
        return rc;
    }
    if (r->format == FORMAT_CSV)
        write_csv_header(&r->view, &r->line);
    else if (r->format == FORMAT_HTML)
        write_html_begin(layout, &r->line);
    else if (r->format == FORMAT_JSON && layout->header_and_rows) {
        buffer_append_text(&r->line, "{\"header\": ");
        write_array_header(&r->view, &r->line);
        buffer_append_text(&r->line, ", \"rows\": [");
    } else if (r->format == FORMAT_JSON) {
        buffer_format(&r->line, "{\"type\":\"%s\",\"version\":1,\"%s\":[", layout->type, layout->rows);
    }
    *out = r;
    return OK;
}

int report_for_people(const struct report *r)
{
    return r->format == FORMAT_TEXT || r->format == FORMAT_MARKDOWN || r->format == FORMAT_HTML;
}

int report_is_text(const struct report *r)
{
    return r->format == FORMAT_TEXT;
}

int report_table_columns(const struct report *r)
{
    return output_is_file(r->out) ? 0 : terminal_columns(STDOUT_FILENO);
}

int report_line_columns(const struct report *r)
{
    return output_columns(r->out);
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

/* 0: a value, 1: not a number, 2: nothing. */
static int emptiness(const struct report_cell *cell)
{
    return cell->type == REPORT_CELL_NONE || (cell->type == REPORT_CELL_TEXT && !cell->length)
               ? 2
               : cell->type == REPORT_CELL_NUMBER && isnan(cell->as.number);
}

/* Of two values: numbers before texts. */
static int compare_values(const struct report_cell *a, const struct report_cell *b)
{
    double x = cell_number(a), y = cell_number(b);

    if (a->type == REPORT_CELL_TEXT && b->type == REPORT_CELL_TEXT)
        return text_natural_order(a->as.text, b->as.text);
    if (a->type == REPORT_CELL_TEXT || b->type == REPORT_CELL_TEXT)
        return (a->type == REPORT_CELL_TEXT) - (b->type == REPORT_CELL_TEXT);
    if (x == y && a->type == b->type && a->type != REPORT_CELL_NUMBER) /* whole numbers that are equal as doubles */
        return a->type == REPORT_CELL_COUNT ? (a->as.count > b->as.count) - (a->as.count < b->as.count)
                                            : (a->as.integer > b->as.integer) - (a->as.integer < b->as.integer);
    return (x > y) - (x < y);
}

static int by_order(const void *a, const void *b, void *context)
{
    const struct report_row *x = *(struct report_row *const *)a, *y = *(struct report_row *const *)b;
    const struct report *r = context;
    int order = 0;

    if (r->sorted) {
        const struct report_cell *p = &x->cells[r->key], *q = &y->cells[r->key];
        int down = r->directed ? r->descending : r->better > 0 && r->view.layout->columns[r->key].value;

        if ((order = emptiness(p) - emptiness(q)) == 0 && !emptiness(p))
            order = down ? compare_values(q, p) : compare_values(p, q);
    }
    /* Sorts by the names that people look for: the texts at the start of the row. */
    for (size_t i = 0; !order && report_for_people(r) && i < r->view.shown_count; i++) {
        size_t column = r->view.shown[i];

        if (r->view.layout->columns[column].kind != REPORT_TEXT)
            break;
        order = compare_values(&x->cells[column], &y->cells[column]);
    }
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static void sort_and_cut(struct report *r)
{
    if (r->count && (r->sorted || report_for_people(r)))
        qsort_r(r->rows, r->count, sizeof *r->rows, by_order, r);
    while (r->count > r->top)
        free(r->rows[--r->count]);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static void flush_line(struct report *r)
{
    r->failed |= !buffer_ok(&r->line);
    output_bytes(r->out, buffer_text(&r->line), r->line.length);
    buffer_clear(&r->line);
}

static void print_row(struct report *r, const struct report_row *row)
{
    if (r->format == FORMAT_CSV) {
        write_csv(&r->view, row, &r->line);
    } else if (r->format == FORMAT_JSONL) {
        write_object(&r->view, row, &r->line);
        buffer_append_byte(&r->line, '\n');
    } else if (r->view.layout->header_and_rows) {
        buffer_append_text(&r->line, r->printed ? ", " : "");
        write_array(&r->view, row, &r->line);
    } else {
        buffer_append_text(&r->line, r->printed ? ",\n" : "\n");
        write_object(&r->view, row, &r->line);
    }
    r->printed++;
    flush_line(r);
}

/* Keeps the current row: one block of memory with its texts after its cells. */
static struct report_row *copy_row(const struct report *r)
{
    size_t cells = r->view.layout->count * sizeof *r->cells;
    struct report_row *row = malloc(sizeof *row + cells + r->texts.length);
    char *texts;

    if (!row)
        return NULL;
    row->number = r->number;
    memcpy(row->cells, r->cells, cells);
    texts = (char *)row->cells + cells;
    if (r->texts.length)
        memcpy(texts, r->texts.data, r->texts.length);
    for (size_t i = 0; i < r->view.layout->count; i++)
        if (row->cells[i].type == REPORT_CELL_TEXT)
            row->cells[i].as.text = texts + row->cells[i].as.count;
    return row;
}

static void keep(struct report *r, struct report_row *row)
{
    if (!ARRAY_ROOM(r->rows, r->capacity, r->count + 1)) {
        r->failed = 1;
        free(row);
        return;
    }
    r->rows[r->count++] = row;
    if (r->top < UINT64_MAX && r->count >= 2 * r->top + KEPT_MORE)
        sort_and_cut(r);
}

static void end_row(struct report *r)
{
    struct report_row *row = buffer_ok(&r->texts) ? copy_row(r) : NULL;

    r->failed |= !row;
    r->number++;
    r->filled = 0;
    buffer_clear(&r->texts);
    if (row && !r->sorted && !report_for_people(r)) {
        if (r->limit) {
            print_row(r, row);
            r->limit--;
        }
        free(row);
    } else if (row) {
        keep(r, row);
    }
}

static struct report_cell *next_cell(struct report *r, int type)
{
    struct report_cell *cell = &r->cells[r->filled++];

    *cell = (struct report_cell){ .type = type };
    return cell;
}

static void filled(struct report *r)
{
    if (r->filled == r->view.layout->count)
        end_row(r);
}

void report_text(struct report *r, const char *text, size_t n)
{
    struct report_cell *cell = next_cell(r, REPORT_CELL_TEXT);

    cell->as.count = r->texts.length;
    cell->length = n;
    if (n)
        buffer_append(&r->texts, text, n);
    buffer_append_byte(&r->texts, '\0');
    filled(r);
}

void report_integer(struct report *r, int64_t v)
{
    next_cell(r, REPORT_CELL_INTEGER)->as.integer = v;
    filled(r);
}

void report_count(struct report *r, uint64_t v)
{
    next_cell(r, REPORT_CELL_COUNT)->as.count = v;
    filled(r);
}

void report_number(struct report *r, double v)
{
    next_cell(r, REPORT_CELL_NUMBER)->as.number = v;
    filled(r);
}

void report_flag(struct report *r, int v)
{
    next_cell(r, REPORT_CELL_FLAG)->as.integer = v;
    filled(r);
}

void report_none(struct report *r)
{
    next_cell(r, REPORT_CELL_NONE);
    filled(r);
}

void report_word(struct report *r, const char *text)
{
    if (text)
        report_text(r, text, strlen(text));
    else
        report_none(r);
}

void report_number_if(struct report *r, int there, double v)
{
    if (there)
        report_number(r, v);
    else
        report_none(r);
}

void report_step(struct report *r, const struct eventlog_point *p)
{
    if (p)
        report_integer(r, p->step);
    else
        report_none(r);
}

void report_point(struct report *r, const struct eventlog_point *p)
{
    report_step(r, p);
    report_number_if(r, p != NULL, p ? p->value : 0);
}

/* ---- sections and the end -------------------------------------------------------------------------------------- */

static void end_section(struct report *r)
{
    size_t left_out;

    sort_and_cut(r);
    for (size_t i = 0; !report_for_people(r) && i < r->count; i++)
        print_row(r, r->rows[i]);
    if (report_for_people(r) && (r->count || r->heading)) {
        buffer_append_text(&r->line, r->sections++ ? "\n" : "");
        if (r->format == FORMAT_TEXT) {
            left_out = write_text(&r->view, r->heading, r->details, r->rows, r->count, report_table_columns(r),
                                  !terminal_utf8(), &r->line);
            r->left_out = left_out > r->left_out ? left_out : r->left_out;
        } else if (r->format == FORMAT_MARKDOWN) {
            write_markdown(&r->view, r->heading, r->rows, r->count, &r->line);
        } else {
            write_html(&r->view, r->heading, r->rows, r->count, &r->line);
        }
        flush_line(r);
    }
    for (size_t i = 0; i < r->count; i++)
        free(r->rows[i]);
    r->count = 0;
    r->limit = r->top;
    free(r->heading);
    free(r->details);
    r->heading = r->details = NULL;
}

void report_section(struct report *r, const char *heading, const char *details, int better)
{
    end_section(r);
    r->better = better;
    r->heading = strdup(heading);
    r->details = details ? strdup(details) : NULL;
    r->failed |= !r->heading || (details && !r->details);
}

void report_member(struct report *r, const char *key, const char *json)
{
    buffer_format(&r->members, ",\"%s\":%s", key, json);
}

void report_total(struct report *r, const char *key, uint64_t v)
{
    buffer_format(&r->total, "%s\"%s\":%llu", r->total.length ? "," : "", key, (unsigned long long)v);
}

void report_totals(struct report *r, const char *json)
{
    buffer_format(&r->total, "%s%s", r->total.length ? "," : "", json);
}

int report_finish(struct report *r, struct scan *s, int rc, int matched, struct error *e)
{
    struct output *out = r->out;
    int status;

    end_section(r);
    if (r->format == FORMAT_JSON && r->view.layout->header_and_rows)
        buffer_append_text(&r->line, "]}\n");
    else if (r->format == FORMAT_JSON)
        buffer_format(&r->line, "]%s,\"total\":{%s}}\n", buffer_text(&r->members), buffer_text(&r->total));
    else if (r->format == FORMAT_HTML)
        write_html_end(&r->line);
    r->failed |= !buffer_ok(&r->members) || !buffer_ok(&r->total);
    flush_line(r);
    if (rc == OK && r->failed)
        rc = error_memory(e, NULL, "for a table of %llu rows", (unsigned long long)r->number);
    if (r->left_out && r->view.layout->tell_left_out)
        log_line(&s->log, "%zu columns do not fit the terminal; use --format=csv to see all", r->left_out);
    r->out = NULL;
    status = gather_finish(s, out, rc, matched, e);
    report_discard(r);
    return status;
}

void report_discard(struct report *r)
{
    if (!r)
        return;
    if (r->out)
        output_close(r->out, 0, NULL);
    for (size_t i = 0; i < r->count; i++)
        free(r->rows[i]);
    free(r->rows);
    free(r->cells);
    free(r->heading);
    free(r->details);
    buffer_release(&r->texts);
    buffer_release(&r->line);
    buffer_release(&r->members);
    buffer_release(&r->total);
    free(r);
}
