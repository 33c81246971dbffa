/*
 * snapshot.h - what all requests are answered from: immutable views of series, runs, and the log as a whole, shared by
 * reference counts. The loader makes new views of what has changed, which share everything else with the old ones, and
 * puts them in place by changing one pointer; a request takes the current view and keeps it until it is answered. So no
 * request waits for the loader, and each is answered from one state.
 *
 * All functions may be called from any thread. A view is never changed, but for the sample that series_sample.h keeps
 * in it.
 */
#ifndef EVENTLOG_SERVER_STORE_SNAPSHOT_H
#define EVENTLOG_SERVER_STORE_SNAPSHOT_H

#include "eventlog/server/store/column_block.h"
#include "eventlog/server/store/series_info.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct series_view {
    struct series_info *info;
    size_t count; /* of its rows, steps rising strictly */
    int64_t last_step;
    double latest;       /* the greatest wall time */
    uint64_t most_blobs; /* in one value */
    unsigned references;
    void *sample; /* of series_sample.h */
    size_t block_count;
    struct column_block *blocks[]; /* all but the last hold COLUMN_BLOCK_ROWS rows */
};

/* The files of a run by number, as they are named in COLUMN_PLACE. */
struct file_names {
    unsigned references;
    size_t count;
    char *paths[];
};

struct run_view {
    char *name; /* valid UTF-8 */
    size_t name_length;
    double start_time;
    unsigned references;
    struct file_names *files;
    size_t count;
    struct series_view *series[]; /* by tag, as bytes */
};

struct log_view {
    unsigned references;
    size_t count;
    struct run_view **runs; /* by start time, then by name */
    uint32_t *by_name;      /* their indices, by name as bytes */
};

/* info and blocks are kept by the view; the caller sets latest and most_blobs. NULL: no memory. */
struct series_view *series_view_new(struct series_info *info, struct column_block *const *blocks, size_t block_count);
void series_views_sort(struct series_view **series, size_t count); /* by tag, as bytes */
struct series_view *series_view_keep(struct series_view *v);
void series_view_drop(struct series_view *v);

uint64_t series_view_at(const struct series_view *v, size_t row, enum column column);
/* The row of that step; (size_t)-1: there is none. */
size_t series_view_find(const struct series_view *v, int64_t step);

struct file_names *file_names_new(char *const *paths, size_t count); /* copied */
void file_names_drop(struct file_names *f);

/* The series, already sorted, and the files are kept by the view. NULL: no memory. */
struct run_view *run_view_new(const char *name, double start_time, struct file_names *files,
                              struct series_view *const *series, size_t count);
struct run_view *run_view_keep(struct run_view *v);
void run_view_drop(struct run_view *v);
/* NULL: there is none. */
struct series_view *run_view_find(const struct run_view *v, const char *tag, size_t n);

/* The runs, in any order, are kept by the view. NULL: no memory. */
struct log_view *log_view_new(struct run_view *const *runs, size_t count);
void log_view_drop(struct log_view *v);
/* The index of a run; (size_t)-1: there is none. */
size_t log_view_find(const struct log_view *v, const char *name, size_t n);

/* The place of the current view. */
struct snapshot {
    pthread_mutex_t lock;
    struct log_view *current;
};

int snapshot_init(struct snapshot *s); /* with an empty view; OK or ERR_NOMEM */
void snapshot_release(struct snapshot *s);
struct log_view *snapshot_take(struct snapshot *s);           /* log_view_drop() it */
void snapshot_put(struct snapshot *s, struct log_view *view); /* takes it over */

#endif
