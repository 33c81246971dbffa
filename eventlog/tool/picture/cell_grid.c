#include "eventlog/tool/picture/cell_grid.h"

#include "base/bytes.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

int cell_grid_begin(struct cell_grid *g, int columns, int rows)
{
    size_t count = (size_t)columns * (size_t)rows;

    if (columns != g->columns || rows != g->rows || !g->cells) {
        free(g->cells);
        g->cells = malloc((count + 1) * sizeof *g->cells);
    }
    g->columns = g->cells ? columns : 0;
    g->rows = g->cells ? rows : 0;
    if (g->cells)
        memset(g->cells, 0, count * sizeof *g->cells);
    return g->cells != NULL;
}

void cell_grid_release(struct cell_grid *g)
{
    free(g->cells);
    g->cells = NULL;
    g->columns = g->rows = 0;
}

static struct grid_cell *cell_at(const struct cell_grid *g, int row, int column)
{
    return &g->cells[row * g->columns + column];
}

/* The length of an escape sequence that colours, or 0. */
static size_t colour_sequence(const char *text, size_t n, uint8_t *colour)
{
    if (n >= 4 && !memcmp(text, "\033[0m", 4)) {
        *colour = 0;
        return 4;
    }
    if (n < 5 || memcmp(text, "\033[3", 3) != 0 || text[3] < '1' || text[3] > '6' || text[4] != 'm')
        return 0;
    *colour = (uint8_t)(text[3] - '0');
    return 5;
}

/* A zero-width character goes into the cell before it. */
static void combine(struct cell_grid *g, int row, int column, const char *text, size_t n)
{
    struct grid_cell *cell = column ? cell_at(g, row, column - 1) : NULL;

    if (cell && cell->covered)
        cell--;
    if (cell && *cell->text && strlen(cell->text) + n < sizeof cell->text)
        strncat(cell->text, text, n);
}

int cell_grid_put(struct cell_grid *g, int row, int column, int end, struct cell_look look, const char *text, size_t n)
{
    uint8_t colour = 0;

    end = end < g->columns ? end : g->columns;
    if (row < 0 || row >= g->rows || column < 0)
        return column;
    while (n && column <= end) {
        size_t length = colour_sequence(text, n, &colour), columns;
        struct grid_cell *cell = cell_at(g, row, column);
        int strange;

        if (length) {
            text += length;
            n -= length;
            continue;
        }
        length = (size_t)utf8_character(text, n, NULL);
        length = length ? length : 1;
        strange = g->ascii && (unsigned char)*text > 0x7e;
        columns = strange ? 1 : text_columns(text, length);
        if (columns == 0) {
            combine(g, row, column, text, length);
        } else if (column + (int)columns > end) {
            break;
        } else {
            *cell = (struct grid_cell){ .look = look };
            cell->look.colour = colour ? colour : look.colour;
            if (columns == 2)
                cell[1] = (struct grid_cell){ .look = cell->look, .covered = 1 };
            memcpy(cell->text, strange ? "?" : text, strange ? 1 : length);
            column += (int)columns;
        }
        text += length;
        n -= length;
    }
    return column;
}

void cell_grid_tint(struct cell_grid *g, int row, int column, int end, struct cell_look look)
{
    for (; row >= 0 && row < g->rows && column < end && column < g->columns; column++) {
        struct cell_look *own = &cell_at(g, row, column)->look;

        own->colour = own->colour ? own->colour : look.colour;
        own->style |= look.style;
    }
}

void cell_grid_copy(struct cell_grid *g, int row, int column, const struct cell_grid *from)
{
    for (int i = 0; i < from->rows && row + i < g->rows; i++)
        for (int k = 0; k < from->columns && column + k < g->columns; k++)
            *cell_at(g, row + i, column + k) = *cell_at(from, i, k);
}

static int same_look(struct cell_look a, struct cell_look b)
{
    return a.colour == b.colour && a.style == b.style;
}

int cell_grid_span(const struct cell_grid *g, int row, int column, struct buffer *out)
{
    struct cell_look look = cell_at(g, row, column)->look;

    for (; column < g->columns && same_look(cell_at(g, row, column)->look, look); column++) {
        const struct grid_cell *cell = cell_at(g, row, column);

        if (!cell->covered)
            buffer_append_text(out, *cell->text ? cell->text : " ");
    }
    return column;
}
