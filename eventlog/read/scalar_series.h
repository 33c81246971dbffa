/*
 * scalar_series.h - the points of one run, gathered by tag while its events go by, under one of three views of what a
 * log means. Feed it the files of a run in order; then finish and read the series. One thread at a time.
 *
 * A point is a simple_value, or a tensor of one float, integer or bool in a series whose first value in the run
 * belonged to the plugin `scalars`. Other values are counted only, and handed to whoever asks for them.
 */
#ifndef EVENTLOG_READ_SCALAR_SERIES_H
#define EVENTLOG_READ_SCALAR_SERIES_H

#include "base/error.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/event_reader.h"

#include <stddef.h>
#include <stdint.h>

enum scalar_view {
    SCALAR_VIEW_ALL,         /* every point in the files */
    SCALAR_VIEW_TENSORBOARD, /* what TensorBoard's default loader (its data server) holds but for its sampling: a file
                              * up to the first record that it does not take, of that the events with a finite wall
                              * time; of these the tags that are scalars by their first value there, a value at step s
                              * removing what its series has at steps >= s; then only floats of rank 0 */
    SCALAR_VIEW_SESSION,     /* SessionLog START at step s removes the earlier points at steps >= s of the whole run */
};

struct scalar_point {
    int64_t step;
    double wall_time; /* seconds since 1970 */
    double value;
};

enum { /* where a point came from */
    SCALAR_FROM_SIMPLE = 1,
    SCALAR_FROM_FLOAT32 = 2, /* simple_value or DT_FLOAT: the value is a float32, widened */
    /* Where the default loader is followed: */
    SCALAR_SHOWN = 4,        /* it shows this value */
    SCALAR_TAKEN = 8,        /* it takes this value into a series of scalars, where it removes those at steps >= its */
};

struct scalar_series {
    const char *tag; /* the run's: tag_length bytes, then a NUL; may hold NULs and bytes that are not UTF-8 */
    size_t tag_length;
    char *plugin;  /* of the first value of the tag in the run; "" if none was given */
    enum event_kind first_kind;
    int first_dtype;
    size_t number;         /* its place among the series of the run, by first appearance */
    enum { SCALAR_NOT_READ, SCALAR_SCALARS, SCALAR_OTHER } loaded; /* what it is to the default loader, if followed */
    int from_damage;       /* all that was found of it so far stood in records with a wrong CRC */
    char *metadata;        /* metadata_length bytes: the SummaryMetadata of the first value, NULL if it had none */
    size_t metadata_length;
    struct scalar_point *points; /* count of them, in reading order until scalar_series_sort() */
    size_t count, capacity;
    uint64_t *marks;       /* per point: its number in the run << 8 | SCALAR_*; NULL where all are alike and no order
                            * was asked for: then `alike` holds the SCALAR_* */
    unsigned alike;
    uint64_t seen;         /* points read, before the view took any away */
    uint64_t skipped;      /* values that are no points */
    int64_t skipped_first, skipped_last, skipped_min, skipped_max; /* their steps */
};

struct scalar_run {
    struct scalar_series *series; /* in order of first appearance until scalar_run_sort() */
    size_t count;
    uint64_t left_out; /* points that the view took away, after scalar_run_finish() */
    uint64_t rounded;  /* points from an int64 that no double holds */
    uint64_t numbered; /* points read so far */
    double began;      /* wall time of the first of them */
    /* Unless NULL: gets the values that are no points from scalar_run_event(); not OK ends it. */
    int (*other)(void *context, const struct scalar_series *s, const struct event *event,
                 const struct event_value *value, struct error *e);
    /* Unless NULL: of the points of the run those for which it says 1 are kept. */
    int (*wanted)(void *context, const struct scalar_series *s, const struct scalar_point *point);
    void *context;
    /* The default loader is followed: set by SCALAR_VIEW_TENSORBOARD, in the other views the caller's to set. */
    int follow_loader;
    /* private */
    enum scalar_view view;
    int keep_order, store, file_ended, loader_reads;
    size_t capacity;
    struct tag_index tags; /* their numbers are places in series until scalar_run_sort() */
};

/* The view called "all", "tensorboard" or "session"; anything else is SCALAR_VIEW_ALL. */
enum scalar_view scalar_view_of(const char *word);

/* keep_order: points get their number in the run, for scalar_run_in_order(). store 0: points are only recognised, not
 * kept. Finish with scalar_run_release(). */
void scalar_run_init(struct scalar_run *r, enum scalar_view view, int keep_order, int store);
void scalar_run_release(struct scalar_run *r);

void scalar_run_begin_file(struct scalar_run *r);
/* A record of this file is damaged. 1: the default loader is followed and takes the record, of which it checks no CRC;
 * *event is what it reads, with is_damaged, for scalar_run_event() before the damage's bytes go. */
int scalar_run_damage(struct scalar_run *r, const struct event_damage *damage, struct event *event);
void scalar_run_restart(struct scalar_run *r);      /* forget all points and series */

/* One event; OK or ERR_NOMEM. */
int scalar_run_event(struct scalar_run *r, const struct event *event, struct error *e);

/* What scalar_run_event() does, for those who handle values as they come: an event's turn, and then each of its values.
 * 1 if it is a point, 0 if not, ERR_NOMEM; *series (borrowed until the next value), *from and, if it is, *point. */
void scalar_run_begin_event(struct scalar_run *r, const struct event *event);
int scalar_run_value(struct scalar_run *r, const struct event *event, const struct event_value *value,
                     struct scalar_point *point, struct scalar_series **series, unsigned *from, struct error *e);

/* All files are read: takes out what the view does not show and counts it. */
void scalar_run_finish(struct scalar_run *r);

/* Series by tag (as bytes); after it, appearance order is gone. */
void scalar_run_sort(struct scalar_run *r);
/* Points by step, equal steps in reading order; does nothing to a series in order. OK or ERR_NOMEM. */
int scalar_series_sort(struct scalar_series *s, struct error *e);

/* SCALAR_* of point i. */
unsigned scalar_series_from(const struct scalar_series *s, size_t i);

#endif
