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

/* Compresses the newest rows too, and frees what only adding needs. 1, or 0: no memory; try again later. */
int point_series_settle(struct point_series *p, size_t columns);

void point_series_release(struct point_series *p);

#endif
