#include "checkpoint/tensor_print.h"

#include "base/text.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_value.h"

#include <string.h>

enum { EDGE = TENSOR_PRINT_EDGE, STRING_MOST = 200 };

void tensor_print_init(struct tensor_print *p, int rank, const int64_t *shape, uint64_t elements, uint64_t limit)
{
    *p = (struct tensor_print){ .rank = rank, .cut = elements > limit, .shape = shape, .elements = elements };
}

void tensor_print_release(struct tensor_print *p)
{
    buffer_release(&p->cells);
}

static int is_cut(const struct tensor_print *p, int d)
{
    return p->cut && p->shape[d] > 2 * EDGE;
}

/* The first element from `at` on that is shown; the number of elements if there is none. */
static uint64_t next_shown(const struct tensor_print *p, uint64_t at)
{
    uint64_t inner = p->elements, rest = at;

    if (p->shown >= TENSOR_PRINT_CELLS)
        return p->elements;
    for (int d = 0; d < p->rank && at < p->elements; d++) {
        uint64_t index, size = (uint64_t)p->shape[d];

        inner /= size;
        index = rest / inner;
        rest %= inner;
        if (is_cut(p, d) && index >= EDGE && index < size - EDGE)
            return at - rest + (size - EDGE - index) * inner;
    }
    return at;
}

/* Begins a cell's text; 0: the element is not shown. */
static int begin_cell(struct tensor_print *p)
{
    return next_shown(p, p->at) == p->at && p->at < p->elements;
}

static void end_cell(struct tensor_print *p, size_t begin)
{
    size_t width = text_columns(buffer_text(&p->cells) + begin, p->cells.length - begin);

    p->width = width > p->width ? width : p->width;
    buffer_append_byte(&p->cells, '\0');
    p->shown++;
}

void tensor_print_add(struct tensor_print *p, int type, const void *bytes, size_t count)
{
    const uint64_t end = p->at + count, start = p->at;
    const char *first = bytes;
    char text[TENSOR_VALUE_TEXT];

    while ((p->at = next_shown(p, p->at)) < end && p->at < p->elements) {
        const char *element = first + (p->at - start) * tensor_type_size(type);
        size_t begin = p->cells.length;

        tensor_value_text(type, element, text);
        buffer_append_text(&p->cells, type == TENSOR_BOOL ? (*text == '0' ? "False" : "True") : text);
        end_cell(p, begin);
        p->at++;
    }
    p->at = end;
}

void tensor_print_add_string(struct tensor_print *p, const char *text, size_t n)
{
    size_t begin = p->cells.length;

    p->left = 1;
    if (begin_cell(p)) {
        buffer_append_byte(&p->cells, '"');
        text_append_safe(&p->cells, text, n < STRING_MOST ? n : STRING_MOST);
        buffer_append_text(&p->cells, n < STRING_MOST ? "\"" : "\"...");
        end_cell(p, begin);
    }
    p->at++;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

struct layout {
    const struct tensor_print *p;
    struct buffer *out;
    size_t columns, line; /* the width of lines; of the one being written */
    const char *cell;     /* the next one */
    size_t left;          /* cells */
};

static void blanks(struct layout *l, size_t n)
{
    l->line += n;
    while (n--)
        buffer_append_byte(l->out, ' ');
}

static void new_line(struct layout *l, size_t indent)
{
    buffer_append_byte(l->out, '\n');
    l->line = 0;
    blanks(l, indent);
}

static void put(struct layout *l, const char *text, size_t width)
{
    buffer_append_text(l->out, text);
    l->line += width;
}

/* The next value of a row, after a blank or on a new line; `closing` brackets follow the last one. */
static void put_cell(struct layout *l, int first, size_t closing)
{
    size_t width = text_columns(l->cell, strlen(l->cell)), indent = (size_t)l->p->rank, pad = l->p->width - width;

    if (!first && l->line + 1 + l->p->width + closing > l->columns)
        new_line(l, indent);
    else if (!first)
        blanks(l, 1);
    if (!l->p->left)
        blanks(l, pad);
    put(l, l->cell, width);
    if (l->p->left && !closing)
        blanks(l, pad);
    l->cell += strlen(l->cell) + 1;
    l->left--;
}

/* A new line for the next array of dimension d, and an empty one between matrices. */
static void next_array(struct layout *l, int d)
{
    if (d < l->p->rank - 2)
        buffer_append_byte(l->out, '\n');
    new_line(l, (size_t)d + 1);
}

/* Dimension d from here: its elements, or the arrays in it. */
static void put_dimension(struct layout *l, int d)
{
    const struct tensor_print *p = l->p;
    int64_t size = p->shape[d];
    int row = d == p->rank - 1;

    put(l, "[", 1);
    for (int64_t i = 0; i < size && l->left; i++) {
        int skipped = is_cut(p, d) && i == EDGE;

        if (skipped)
            i = size - EDGE;
        if (i && !row) {
            if (skipped) {
                next_array(l, d);
                put(l, "...", 3);
            }
            next_array(l, d);
        } else if (skipped) {
            put(l, " ...", 4);
        }
        if (row)
            put_cell(l, !i, i == size - 1 ? (size_t)p->rank : 0);
        else
            put_dimension(l, d + 1);
    }
    put(l, "]", 1);
}

void tensor_print_append(const struct tensor_print *p, size_t columns, struct buffer *out)
{
    struct layout l = { p, out, columns, 0, buffer_text(&p->cells), p->shown };

    out->failed |= p->cells.failed;
    if (!buffer_ok(&p->cells))
        return;
    if (!p->elements)
        put(&l, "[]", 2);
    else if (!p->rank && p->shown)
        put_cell(&l, 1, 1);
    else if (p->rank)
        put_dimension(&l, 0);
    if (p->shown >= TENSOR_PRINT_CELLS && p->shown < p->elements)
        buffer_append_text(out, " ... (too many to show)");
    buffer_append_byte(out, '\n');
}
