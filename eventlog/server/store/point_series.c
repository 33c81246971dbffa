#include "eventlog/server/store/point_series.h"

#include "base/array.h"
#include "base/bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int push_block(struct point_series *p, size_t columns)
{
    struct column_block *b;

    if (!ARRAY_ROOM(p->blocks, p->block_capacity, p->block_count + 1) ||
        !(b = column_block_new(p->tail, p->tail_count, columns)))
        return 0;
    p->blocks[p->block_count++] = b;
    p->tail_count = 0;
    return 1;
}

/* The last block becomes the newest rows again. */
static int pop_block(struct point_series *p)
{
    struct column_block *last = p->blocks[p->block_count - 1];

    if (!ARRAY_ROOM(p->tail, p->tail_capacity, column_block_rows(last)))
        return 0;
    column_block_rows_read(last, p->tail);
    p->tail_count = column_block_rows(last);
    column_block_drop(last);
    p->block_count--;
    return 1;
}

static void note_row(struct point_series *p, const struct column_row *row)
{
    double wall = bits_double(row->at[COLUMN_WALL]);
    uint64_t blobs = row->at[COLUMN_PLACE] & 0xffffffff;

    p->latest = wall > p->latest ? wall : p->latest;
    p->most_blobs = blobs > p->most_blobs ? blobs : p->most_blobs;
}

/* Removes all rows at steps >= step. 0: no memory; rows may be missing from the end. */
static int cut_from(struct point_series *p, int64_t step)
{
    while (p->rows) {
        if (!p->tail_count && !pop_block(p))
            return 0;
        p->cut = 1;
        if ((int64_t)p->tail[0].at[COLUMN_STEP] >= step) {
            p->rows -= p->tail_count;
            p->tail_count = 0;
            continue;
        }
        for (; (int64_t)p->tail[p->tail_count - 1].at[COLUMN_STEP] >= step; p->rows--)
            p->tail_count--;
        return 1;
    }
    return 1;
}

int point_series_add(struct point_series *p, const struct column_row *row, size_t columns)
{
    const int64_t step = (int64_t)row->at[COLUMN_STEP];

    if (!p->tail_count && p->block_count && column_block_rows(p->blocks[p->block_count - 1]) < COLUMN_BLOCK_ROWS &&
        !pop_block(p))
        return 0;
    if (p->rows && step <= p->last_step && !cut_from(p, step))
        return 0;
    if (p->tail_count == COLUMN_BLOCK_ROWS && !push_block(p, columns))
        return 0;
    if (!ARRAY_ROOM(p->tail, p->tail_capacity, p->tail_count + 1))
        return 0;
    if (!p->rows++) {
        p->latest = -INFINITY;
        p->most_blobs = 0;
        p->cut = 0;
    }
    p->tail[p->tail_count++] = *row;
    p->last_step = step;
    note_row(p, row);
    return 1;
}

/* Looks at all rows again. */
static void note_all(struct point_series *p)
{
    p->latest = -INFINITY;
    p->most_blobs = 0;
    for (size_t b = 0; b < p->block_count; b++) {
        struct column_row rows[COLUMN_BLOCK_ROWS];

        column_block_rows_read(p->blocks[b], rows);
        for (size_t i = 0; i < column_block_rows(p->blocks[b]); i++)
            note_row(p, &rows[i]);
    }
    p->cut = 0;
}

int point_series_settle(struct point_series *p, size_t columns)
{
    if (p->tail_count && !push_block(p, columns))
        return 0;
    free(p->tail);
    p->tail = NULL;
    p->tail_capacity = 0;
    if (p->cut)
        note_all(p);
    return 1;
}

void point_series_release(struct point_series *p)
{
    for (size_t i = 0; i < p->block_count; i++)
        column_block_drop(p->blocks[i]);
    free(p->blocks);
    free(p->tail);
    memset(p, 0, sizeof *p);
}
