/*
 * point_series.h - the rows of a series as the loader collects them: compressed blocks, and the newest rows as they
 * are. Steps rise strictly: a row at step s removes all rows at steps >= s before it is added, so a training that is
 * restarted from an earlier checkpoint replaces what it repeats. One thread at a time.
 */
#ifndef EVENTLOG_SERVER_STORE_POINT_SERIES_H
#define EVENTLOG_SERVER_STORE_POINT_SERIES_H

#include "eventlog/server/store/column_block.h"

#include <stddef.h>
#include <stdint.h>

struct point_series { /* all zero at first */
    size_t rows;
    int64_t last_step;
    double latest;       /* the greatest wall time; after point_series_settle() */
    uint64_t most_blobs; /* of a series with places; likewise */
    /* blocks are full; after point_series_settle() the last one need not be, and holds the newest rows */
    struct column_block **blocks;
    size_t block_count;
    /* private */
    size_t block_capacity, tail_count, tail_capacity;
    struct column_row *tail;
    int cut; /* latest and most_blobs may be those of rows that have been removed */
};

/* columns: 3 or 4, always the same. 1, or 0: no memory, and the row is not there. */
int point_series_add(struct point_series *p, const struct column_row *row, size_t columns);

/* Appends the rows of a block, which it takes over in any case, to a series that is settled. The caller sets latest and
 * most_blobs. 1; 0: no memory, the last block is not full, or the first step of this one is not above the last. */
int point_series_add_block(struct point_series *p, struct column_block *b);

/* The blocks of a settled series as bytes, each with its length (2 bytes) before it. point_series_save_block(): how
 * many bytes block number b takes. point_series_load(): appends all blocks of n bytes, as point_series_add_block() and
 * column_block_load() do. */
enum { POINT_SERIES_BLOCK_BYTES = 2 + COLUMN_BLOCK_BYTES };
size_t point_series_save_block(const struct point_series *p, size_t b, uint8_t out[POINT_SERIES_BLOCK_BYTES]);
int point_series_load(struct point_series *p, const uint8_t *bytes, size_t n, size_t columns, struct shared_bytes *of);

/* Compresses the newest rows too, and frees what only adding needs. 1, or 0: no memory; try again later. */
int point_series_settle(struct point_series *p, size_t columns);

void point_series_release(struct point_series *p);

#endif
