/* run_state.h - the inside of a struct run_data, for run_data.c, which fills it, and for what saves it and brings it
 * back. */
#ifndef EVENTLOG_SERVER_STORE_RUN_STATE_H
#define EVENTLOG_SERVER_STORE_RUN_STATE_H

#include "eventlog/format/tag_index.h"
#include "eventlog/server/store/point_series.h"
#include "eventlog/server/store/snapshot.h"

#include <stddef.h>
#include <stdint.h>

struct run_series {
    struct series_info *info;   /* NULL: no value yet */
    struct point_series *parts; /* by writer: part_count of them */
    size_t part_count, columns;
    int changed;
    struct series_view *view;
};

struct run_file {
    char *path;
    int begun;
    size_t writer;
    double first, last; /* wall times */
    double known_last;  /* as of an earlier reading; -INFINITY: unknown */
    double next_began;  /* the first wall time of a file that continues this one; INFINITY: none does */
};

struct run_data {
    char *name;
    int merge, changed, files_changed;
    double start_time; /* INFINITY: unknown */
    uint64_t points;
    struct tag_index tags; /* items: struct run_series */
    struct run_file *files;
    size_t file_count, file_capacity;
    double *writer_ends; /* of each writer: when its last file ended */
    size_t writer_count, writer_capacity;
    struct file_names *names;
};

/* Sets names to those of the files as of now; 0: no memory. */
int run_data_names(struct run_data *r);

#endif
