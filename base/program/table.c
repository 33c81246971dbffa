#include "base/program/table.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,
    NARROWEST = 8,
    SHORT = 16,         /* columns up to this width stay whole while others can be omitted */
    ALIGNED_MOST = 160, /* without a limit: a wider cell shifts only its own row, and does not widen every line */
    NUMBER = 1,         /* first byte of a cell that holds the bytes of a double */
};

void table_init(struct table *t, const struct table_column *columns, size_t count)
{
    memset(t, 0, sizeof *t);
    t->columns = columns;
    t->column_count = count;
}

void table_release(struct table *t)
{
    buffer_release(&t->cells);
    free(t->rounding);
    t->rounding = NULL;
}

void table_text(struct table *t, const char *text, size_t n)
{
    text_append_safe(&t->cells, text, n);
    buffer_append_byte(&t->cells, '\0');
    t->filled++;
}

void table_cell(struct table *t, const char *format, ...)
{
    struct buffer text = BUFFER_EMPTY;
    char small[256];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n >= (int)sizeof small && buffer_reserve(&text, (size_t)n + 1)) {
        va_start(args, format);
        vsnprintf(text.data, (size_t)n + 1, format, args);
        va_end(args);
    }
    table_text(t, text.data ? text.data : small, n < 0 ? 0 : text.data ? (size_t)n : strlen(small));
    t->cells.failed |= text.failed;
    buffer_release(&text);
}

void table_number(struct table *t, double value)
{
    if (!t->rounding && !(t->rounding = calloc(t->column_count, sizeof *t->rounding))) {
        t->cells.failed = 1;
        return;
    }
    human_rounding_add(&t->rounding[t->filled % t->column_count], value);
    buffer_append_byte(&t->cells, NUMBER);
    buffer_append(&t->cells, &value, sizeof value);
    buffer_append_byte(&t->cells, '\0');
    t->filled++;
}

/* The text of the cell at *at in this column; moves *at to the next. */
static const char *next_cell(const struct table *t, size_t column, const char **at, char *number)
{
    const char *text = *at;
    double value;

    if (*text != NUMBER) {
        *at += strlen(text) + 1;
        return text;
    }
    memcpy(&value, text + 1, sizeof value);
    *at += 1 + sizeof value + 1;
    return human_rounded(&t->rounding[column], value, number);
}

static void measure(const struct table *t, size_t *width)
{
    const char *at = t->cells.data;
    char number[HUMAN_TEXT_MAX];

    for (size_t i = 0; i < t->column_count; i++)
        width[i] = text_columns(t->columns[i].title, strlen(t->columns[i].title));
    for (size_t i = 0; i < t->filled; i++) {
        const char *text = next_cell(t, i % t->column_count, &at, number);
        size_t n = text_columns(text, strlen(text));

        if (n > width[i % t->column_count])
            width[i % t->column_count] = n;
    }
}

/* The width of a line; a column of width SIZE_MAX is omitted. */
static size_t line_width(const struct table *t, const size_t *width)
{
    size_t sum = 0;

    for (size_t i = 0; i < t->column_count; i++)
        if (width[i] != SIZE_MAX)
            sum += width[i] + (sum ? GAP : 0);
    return sum;
}

static size_t narrowest(const struct table_column *column)
{
    return column->cut > NARROWEST ? (size_t)column->cut : NARROWEST;
}

/* How far a column of this width may be cut while others can be omitted instead: a short name stays whole. */
static size_t floor_of(const struct table_column *column, size_t width)
{
    return !column->cut || width <= SHORT || width < narrowest(column) ? width : narrowest(column);
}

/* The widest column that can still be cut; column_count: none. */
static size_t widest(const struct table *t, const size_t *width, const size_t *floors)
{
    size_t best = t->column_count;

    for (size_t i = 0; i < t->column_count; i++)
        if (t->columns[i].cut && width[i] != SIZE_MAX && width[i] > floors[i] &&
            (best == t->column_count || width[i] > width[best]))
            best = i;
    return best;
}

static size_t first_to_go(const struct table *t, const size_t *width)
{
    size_t best = t->column_count;

    for (size_t i = 0; i < t->column_count; i++)
        if (t->columns[i].leave_out && width[i] != SIZE_MAX &&
            (best == t->column_count || t->columns[i].leave_out > t->columns[best].leave_out))
            best = i;
    return best;
}

static void cut(const struct table *t, size_t *width, const size_t *floors, size_t most)
{
    size_t column;

    while (line_width(t, width) > most && (column = widest(t, width, floors)) < t->column_count)
        width[column]--;
}

/* Makes the columns fit, with room for as many numbers in floors; returns how many were omitted. */
static size_t fit(const struct table *t, size_t *width, size_t *floors, size_t most)
{
    size_t left_out = 0, column;

    for (size_t i = 0; i < t->column_count; i++)
        floors[i] = floor_of(&t->columns[i], width[i]);
    while (line_width(t, floors) > most && (column = first_to_go(t, floors)) < t->column_count) {
        floors[column] = width[column] = SIZE_MAX;
        left_out++;
    }
    cut(t, width, floors, most);
    for (size_t i = 0; i < t->column_count; i++) /* no more columns can be omitted */
        floors[i] = narrowest(&t->columns[i]);
    cut(t, width, floors, most);
    return left_out;
}

static void blanks(struct buffer *out, size_t n)
{
    while (n--)
        buffer_append_byte(out, ' ');
}

/* limited: cells wider than the column are cut; otherwise only extremely long ones. */
static void print_cell(struct buffer *out, const char *text, size_t width, int right, int limited, int ascii,
                       size_t *owed)
{
    struct buffer cell = BUFFER_EMPTY;
    size_t columns, gap;

    text_append_cut(&cell, text, strlen(text), limited ? width : TEXT_NAME_MOST, ascii);
    columns = text_columns(buffer_text(&cell), cell.length);
    gap = columns < width ? width - columns : 0;
    if (cell.length)
        blanks(out, *owed + (right ? gap : 0));
    buffer_append(out, buffer_text(&cell), cell.length);
    /* Blanks are written only before the next non-empty cell: no line ends with blanks. */
    *owed = cell.length ? (right ? 0 : gap) : *owed + width;
    *owed += GAP;
    out->failed |= cell.failed;
    buffer_release(&cell);
}

size_t table_print(struct table *t, size_t indent, int columns, int ascii, struct buffer *out)
{
    size_t *width = malloc(2 * t->column_count * sizeof *width), left_out = 0, owed = indent;
    const char *at = t->cells.data;
    char number[HUMAN_TEXT_MAX];

    if (!width || !buffer_ok(&t->cells) || t->filled % t->column_count) {
        out->failed |= !width || t->cells.failed;
        free(width);
        table_release(t);
        return 0;
    }
    measure(t, width);
    if (columns)
        left_out = fit(t, width, width + t->column_count, (size_t)columns > indent ? (size_t)columns - indent : 1);
    for (size_t i = 0; i < t->column_count && !columns; i++)
        width[i] = width[i] < ALIGNED_MOST ? width[i] : ALIGNED_MOST;
    for (size_t i = 0; i < t->column_count + t->filled; i++) {
        size_t column = i % t->column_count;
        const char *text = i < t->column_count ? t->columns[i].title : next_cell(t, column, &at, number);

        if (width[column] != SIZE_MAX)
            print_cell(out, text, width[column], t->columns[column].right, columns > 0, ascii, &owed);
        if (column + 1 == t->column_count) {
            buffer_append_byte(out, '\n');
            owed = indent;
        }
    }
    free(width);
    t->filled = 0;
    table_release(t);
    return left_out;
}
