/*
 * column_block.h - up to COLUMN_BLOCK_ROWS rows of a series, compressed and immutable, of which any row can be read
 * alone. A row has 64-bit numbers: step, wall time (as the bits of a double), and what the series holds. Each column is
 * stored as the distance from a straight line, in as many bytes as the largest distance takes: regular steps take none,
 * times 2 to 4, so a point of a curve takes 6 to 8 bytes. Nothing is rounded.
 *
 * Blocks are shared: column_block_keep() and column_block_drop() may be called from any thread.
 */
#ifndef EVENTLOG_SERVER_STORE_COLUMN_BLOCK_H
#define EVENTLOG_SERVER_STORE_COLUMN_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { COLUMN_BLOCK_ROWS = 256 };

/* the columns of every series; then those of a series of numbers, and those of another series */
enum column {
    COLUMN_STEP,
    COLUMN_WALL,
    COLUMN_VALUE,      /* the bits of a float */
    COLUMN_OFFSET = 2, /* of the record in the file */
    COLUMN_PLACE,      /* the number of the file << 32 | how many blobs the value has */
    COLUMNS_MOST
};

struct column_row {
    uint64_t at[COLUMNS_MOST];
};

struct column_block;

/* n from 1 to COLUMN_BLOCK_ROWS; columns 3 or 4. NULL: no memory. column_block_drop() it. */
struct column_block *column_block_new(const struct column_row *rows, size_t n, size_t columns);
struct column_block *column_block_keep(struct column_block *b); /* returns b */
void column_block_drop(struct column_block *b);                 /* NULL is fine */

size_t column_block_rows(const struct column_block *b);
size_t column_block_columns(const struct column_block *b);
uint64_t column_block_at(const struct column_block *b, size_t row, enum column column);

/* Rows from, from + 1, ... of one column: n of them into out. */
void column_block_read(const struct column_block *b, enum column column, size_t from, size_t n, uint64_t *out);

/* All rows into out; columns that the block does not have are 0. */
void column_block_rows_read(const struct column_block *b, struct column_row *out);

#endif
