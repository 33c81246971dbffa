/*
 * run_data.h - one run as the loader collects it, event by event: all series of numbers with their points, and of all
 * other series where each value is in which file. From it views are made (snapshot.h).
 *
 * Files of a run are read in their order. A file that begins after the others ended continues them: if its steps start
 * lower, the training was restarted, and replaces what it repeats. A file that overlaps others in time is that of
 * another writer: its series are collected apart, and merged by step, at equal steps the newer value. That two files
 * overlap may show only after the second has been read; then the run must be read again.
 *
 * One thread at a time; several threads may each have a run.
 */
#ifndef EVENTLOG_SERVER_STORE_RUN_DATA_H
#define EVENTLOG_SERVER_STORE_RUN_DATA_H

#include "base/error.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/server/store/column_block.h"
#include "eventlog/server/store/snapshot.h"

#include <stddef.h>
#include <stdint.h>

/* ---- point series ------------------------------------------------------------------------------------------------ */

/*
 * The rows of a series as the loader collects them: compressed blocks, and the newest rows as they
 * are. Steps rise strictly: a row at step s removes all rows at steps >= s before it is added, so a training that is
 * restarted from an earlier checkpoint replaces what it repeats. One thread at a time.
 */

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

/* ---- run data ---------------------------------------------------------------------------------------------------- */

struct run_data;

/* merge 0: as if each file began after the one before it, like TensorBoard's data server. NULL: no memory. */
struct run_data *run_data_new(const char *name, int merge);
void run_data_free(struct run_data *r); /* NULL is fine */

/* The event of file number `file`, path `path` (copied when first seen), whose record is at offset. OK; RUN_DATA_AGAIN:
 * call run_data_restart() and feed all files again; ERR_NOMEM: the same, later. */
enum { RUN_DATA_AGAIN = 1 };
int run_data_event(struct run_data *r, size_t file, const char *path, const struct event *event, uint64_t offset,
                   struct error *e);

/* For events of one number each, by tag, of which others have found out what they hold. run_data_series(): the number
 * of the series of a tag, (size_t)-1 if it has no value yet; *numbers: whether it is one of numbers. run_data_row(): as
 * run_data_event() for an event that has this number in that series, of a file that had an event before. */
size_t run_data_series(struct run_data *r, const char *tag, size_t n, int *numbers);
int run_data_row(struct run_data *r, size_t file, size_t series, int64_t step, double wall, float number,
                 struct error *e);

/* Forgets all events. learnt 1: but not which files overlap, after RUN_DATA_AGAIN; 0: this, too. */
void run_data_restart(struct run_data *r, int learnt);

/* 1 if events came since the last view. */
int run_data_changed(const struct run_data *r);
/* How many rows of numbers have been read since the start. */
uint64_t run_data_points(const struct run_data *r);

/* A new view; *out is NULL while the run has no event with a time. OK or ERR_NOMEM: then try again later. */
int run_data_view(struct run_data *r, struct run_view **out, struct error *e);

#endif
