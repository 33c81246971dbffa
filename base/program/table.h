/*
 * table.h - a table for people: cells are gathered row by row, then laid out so that no line is wider than asked for.
 * Where the width does not suffice, columns that may be left out go, those with the highest `leave_out` first, until
 * the others fit with cells cut in the middle where their column allows it. One thread at a time.
 */
#ifndef BASE_PROGRAM_TABLE_H
#define BASE_PROGRAM_TABLE_H

#include "base/buffer.h"
#include "base/human.h"

#include <stddef.h>

struct table_column {
    const char *title; /* borrowed */
    int right;         /* 1: aligned to the right */
    int cut;           /* 0: never; else cells may be cut in the middle, down to so many columns, at least 8 */
    int leave_out;     /* 0: never; else the higher, the earlier */
};

struct table {
    const struct table_column *columns; /* column_count of them; borrowed */
    size_t column_count;
    struct buffer cells;                /* each ends in a NUL, control characters escaped; numbers as TABLE_NUMBER */
    size_t filled;
    struct human_rounding *rounding;    /* of each column; NULL before the first number */
};

void table_init(struct table *t, const struct table_column *columns, size_t count);
void table_release(struct table *t);

/* The next cell, from left to right, row by row. */
void table_text(struct table *t, const char *text, size_t n);
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number that is rounded as the others of its column are (human_rounded()). */
void table_number(struct table *t, double value);

/* Appends a line of titles and a line for each row, at most `columns` wide with `indent` blanks before; ascii: cuts are
 * marked by "..". Returns how many columns were left out. columns 0: no limit, and only cells of more than
 * TEXT_NAME_MOST columns are cut; one of more than 160 moves what follows it, so that the text grows with the cells and
 * not with rows times the longest of them. The cells are gone after it; if one of them could not be kept, out is in its
 * failed state. */
size_t table_print(struct table *t, size_t indent, int columns, int ascii, struct buffer *out);

#endif
