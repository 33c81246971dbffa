#include "eventlog/tool/report/report.h"

#include "base/array.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "eventlog/tool/report/report_write.h"
#include "eventlog/tool/time_option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        report_write_csv_header(&r->view, &r->line);
    else if (r->format == FORMAT_HTML)
        report_write_html_begin(layout, &r->line);
    else if (r->format == FORMAT_JSON && layout->header_and_rows) {
        buffer_append_text(&r->line, "{\"header\": ");
        report_write_array_header(&r->view, &r->line);
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
    double x = report_cell_number(a), y = report_cell_number(b);

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
        report_write_csv(&r->view, row, &r->line);
    } else if (r->format == FORMAT_JSONL) {
        report_write_object(&r->view, row, &r->line);
        buffer_append_byte(&r->line, '\n');
    } else if (r->view.layout->header_and_rows) {
        buffer_append_text(&r->line, r->printed ? ", " : "");
        report_write_array(&r->view, row, &r->line);
    } else {
        buffer_append_text(&r->line, r->printed ? ",\n" : "\n");
        report_write_object(&r->view, row, &r->line);
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

void report_step(struct report *r, const struct scalar_point *p)
{
    if (p)
        report_integer(r, p->step);
    else
        report_none(r);
}

void report_point(struct report *r, const struct scalar_point *p)
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
            left_out = report_write_text(&r->view, r->heading, r->details, r->rows, r->count, report_table_columns(r),
                                         !terminal_utf8(), &r->line);
            r->left_out = left_out > r->left_out ? left_out : r->left_out;
        } else if (r->format == FORMAT_MARKDOWN) {
            report_write_markdown(&r->view, r->heading, r->rows, r->count, &r->line);
        } else {
            report_write_html(&r->view, r->heading, r->rows, r->count, &r->line);
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
        report_write_html_end(&r->line);
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
