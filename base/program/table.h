/*
 * table.h - a table for people: cells are collected row by row, then laid out within a given width. If the width is too
 * small, columns that may be omitted are, highest `leave_out` first, until the others fit with cells cut in the middle
 * if their column allows it. One thread at a time.
 */
#ifndef BASE_PROGRAM_TABLE_H
#define BASE_PROGRAM_TABLE_H

#include "base/buffer.h"
#include "base/human.h"

#include <stddef.h>

struct table_column {
    const char *title; /* borrowed */
    int right;         /* 1: aligned to the right */
    int cut;           /* 0: never; else cells may be cut in the middle, to this width at least, >= 8 */
    int leave_out;     /* 0: never; else higher ones are omitted first */
};

struct table {
    const struct table_column *columns; /* column_count of them; borrowed */
    size_t column_count;
    struct buffer cells; /* each ends with a NUL, control characters escaped; numbers as TABLE_NUMBER */
    size_t filled;
    struct human_rounding *rounding; /* of each column; NULL before the first number */
};

void table_init(struct table *t, const struct table_column *columns, size_t count);
void table_release(struct table *t);

/* Adds the next cell, left to right, row by row. */
void table_text(struct table *t, const char *text, size_t n);
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a number, rounded like the others of its column (human_rounded()). */
void table_number(struct table *t, double value);

/* Appends a line of titles and a line for each row, at most `columns` wide, indented by `indent` blanks; ascii: marks
 * cuts with "..". Returns how many columns were omitted. columns 0: no limit; only cells of more than TEXT_NAME_MOST
 * columns are cut, and one of more than 160 shifts the rest of its row, so that the text grows with the cells and not
 * with rows times the longest cell. Removes the cells; if one could not be stored, out is in its failed state. */
size_t table_print(struct table *t, size_t indent, int columns, int ascii, struct buffer *out);

#endif
