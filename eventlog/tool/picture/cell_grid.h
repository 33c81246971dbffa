/*
 * cell_grid.h - a page of a terminal as rows of cells, drawn in memory. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_CELL_GRID_H
#define EVENTLOG_TOOL_PICTURE_CELL_GRID_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

enum { CELL_BOLD = 1, CELL_FAINT = 2, CELL_REVERSE = 4 };
enum { CELL_RED = 1, CELL_GREEN, CELL_YELLOW, CELL_BLUE, CELL_MAGENTA, CELL_CYAN }; /* as ANSI numbers them */

struct cell_look {
    uint8_t colour; /* 0: the terminal's own */
    uint8_t style;
};

enum { CELL_TEXT_MAX = 16 };

struct grid_cell {
    char text[CELL_TEXT_MAX]; /* a character and what combines with it; "": a blank */
    struct cell_look look;
    uint8_t covered; /* by the wide character to the left */
};

/* all zero at first */
struct cell_grid {
    struct grid_cell *cells;
    int columns, rows;
    int ascii; /* characters beyond 0x7e are put as '?' */
};

/* Makes a grid of blank cells. 1, or 0 if memory runs out: then the grid has no cells. */
int cell_grid_begin(struct cell_grid *g, int columns, int rows);
void cell_grid_release(struct cell_grid *g);

/* Puts n bytes of text without control characters into a row from `column` to before `end`. "\033[31m" to "\033[36m"
 * colour what follows, "\033[0m" ends that; the style is that of look. Returns the column after the text. */
int cell_grid_put(struct cell_grid *g, int row, int column, int end, struct cell_look look, const char *text, size_t n);

/* Adds the style of look to the cells of a row from `column` to before `end`, and its colour to those that have
 * none. */
void cell_grid_tint(struct cell_grid *g, int row, int column, int end, struct cell_look look);

/* Copies a grid into another, with its upper left cell at (row, column). */
void cell_grid_copy(struct cell_grid *g, int row, int column, const struct cell_grid *from);

/* Appends the row's text from `column` on as far as the look is the same; returns the column after it. */
int cell_grid_span(const struct cell_grid *g, int row, int column, struct buffer *out);

#endif
