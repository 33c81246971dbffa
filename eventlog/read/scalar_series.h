/*
 * scalar_series.h - collects the points of one run by tag from its events, under one of three views of which points
 * count (enum eventlog_view). Feed it the files of a run in order; then finish and read the series. One thread at a
 * time.
 *
 * A point is a simple_value, or a tensor of one float, integer or bool in a series whose first value in the run
 * belonged to the plugin `scalars`. Other values are only counted, and passed to scalar_run.other.
 */
#ifndef EVENTLOG_READ_SCALAR_SERIES_H
#define EVENTLOG_READ_SCALAR_SERIES_H

#include "base/error.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/event_reader.h"

#include <stddef.h>
#include <stdint.h>

/* where a point came from */
enum {
    SCALAR_FROM_SIMPLE = 1,
    SCALAR_FROM_FLOAT32 = 2, /* simple_value or DT_FLOAT: the value is a float32, widened */
    /* If the default loader is followed: */
    SCALAR_SHOWN = 4, /* it shows this value */
    SCALAR_TAKEN = 8, /* it takes this value into a series of scalars, which removes the earlier ones at steps >=
                              * its own */
};

struct scalar_series {
    const char *tag; /* borrowed from the run: tag_length bytes, then a NUL; may hold NULs and bytes that are not
                      * UTF-8 */
    size_t tag_length;
    char *plugin; /* of the first value of the tag in the run; "" if none was given */
    enum event_kind first_kind;
    int first_dtype;
    size_t number; /* its index among the series of the run, by first appearance */
    enum {
        SCALAR_NOT_READ,
        SCALAR_SCALARS,
        SCALAR_OTHER
    } loaded;        /* what the default loader takes it for, if
                                                                    * followed */
    int from_damage; /* all of its values so far were in records with a wrong CRC */
    char *metadata;  /* metadata_length bytes: the SummaryMetadata of the first value, NULL if it had none */
    size_t metadata_length;
    struct eventlog_point *points; /* count of them, in reading order until scalar_series_sort() */
    size_t count, capacity;
    size_t mapped;   /* bytes of pages of their own that hold the points; 0: they are in the heap */
    uint64_t *marks; /* per point: its number in the run << 8 | SCALAR_*; NULL if all points have the same
                            * SCALAR_* and no order was asked for: then `alike` holds them */
    unsigned alike;
    unsigned usual;   /* SCALAR_FROM_* of its last value if that was a point in a usual event, else 0 */
    uint64_t seen;    /* points read, before the view took any away */
    uint64_t skipped; /* values that are not points */
    int64_t skipped_first, skipped_last, skipped_min, skipped_max; /* their steps */
};

struct scalar_run {
    struct scalar_series *series; /* in order of first appearance until scalar_run_sort() */
    size_t count;
    uint64_t left_out; /* points that the view removed, after scalar_run_finish() */
    uint64_t rounded;  /* points from an int64 that no double holds */
    uint64_t numbered; /* points read so far */
    double began;      /* wall time of the first point */
    /* Unless NULL: scalar_run_event() passes it the values that are not points; a result other than OK ends the
     * event. */
    int (*other)(void *context, const struct scalar_series *s, const struct event *event,
                 const struct event_value *value, struct error *e);
    /* Unless NULL: only points for which it returns 1 are kept. */
    int (*wanted)(void *context, const struct scalar_series *s, const struct eventlog_point *point);
    void *context;
    /* 1: follow the default loader. EVENTLOG_VIEW_TENSORBOARD sets it; in the other views the caller may. */
    int follow_loader;
    /* private */
    enum eventlog_view view;
    int keep_order, store, file_ended, loader_reads;
    size_t capacity;
    struct tag_index tags; /* their numbers are indices of series until scalar_run_sort() */
};

/* The view called "all", "tensorboard" or "session"; anything else is EVENTLOG_VIEW_ALL. */
enum eventlog_view scalar_view_of(const char *word);

/* keep_order: remember the number of each point in the run. store 0: points are only recognised, not kept. Finish with
 * scalar_run_release(). */
void scalar_run_init(struct scalar_run *r, enum eventlog_view view, int keep_order, int store);
void scalar_run_release(struct scalar_run *r);

void scalar_run_begin_file(struct scalar_run *r);
/* A record of this file is damaged. 1: the default loader is followed and accepts the record, because it does not check
 * its CRC; *event is what it reads, with is_damaged set: pass it to scalar_run_event() while damage->data is valid. */
int scalar_run_damage(struct scalar_run *r, const struct event_damage *damage, struct event *event);
void scalar_run_restart(struct scalar_run *r); /* forget all points and series */

/* One event; OK or ERR_NOMEM. */
int scalar_run_event(struct scalar_run *r, const struct event *event, struct error *e);

/* The same for a usual event (event_reader_take_usual()); `run` is a scalar_run. 1: taken. 0: for scalar_run_event(),
 * such as the first of a series; also if there is no memory. */
int scalar_run_usual(void *run, const struct usual_event *event);

/* What scalar_run_event() does, for callers that handle values one by one: first the event, then each of its values.
 * Returns 1 if the value is a point, 0 if not, or ERR_NOMEM, and sets *series (borrowed until the next value), *from
 * and, for a point, *point. */
void scalar_run_begin_event(struct scalar_run *r, const struct event *event);
int scalar_run_value(struct scalar_run *r, const struct event *event, const struct event_value *value,
                     struct eventlog_point *point, struct scalar_series **series, unsigned *from, struct error *e);

/* All files have been read: removes and counts the points that the view does not show. */
void scalar_run_finish(struct scalar_run *r);

/* ---- parts of a run that were read apart (run_pieces.h) ---- */

/* 1: what a value adds to the run depends on nothing but the first value of its series: parts can be read apart. */
int scalar_run_is_plain(const struct scalar_run *r);
#define SCALAR_RUN_NONE ((size_t)-1)
/* The number of the series with that tag; SCALAR_RUN_NONE: there is none. */
size_t scalar_run_find(struct scalar_run *r, const char *tag, size_t length);
/* The number of r's series that takes values as s does; adds it if r has none of that tag. SCALAR_RUN_NONE: r's is of
 * another kind, or there is no memory. */
size_t scalar_run_like(struct scalar_run *r, const struct scalar_series *s);
/* 1: both take values alike, and points of `part` can follow those of s. NULL: of a series without points. */
int scalar_series_fits(const struct scalar_series *s, const struct scalar_series *part);
/* Adds what `part` has read to r's series s, which it fits; r->wanted chooses. 0: no memory. */
int scalar_run_append(struct scalar_run *r, struct scalar_series *s, const struct scalar_series *part);
/* Adds what `part` has counted, once its series are added. */
void scalar_run_count(struct scalar_run *r, const struct scalar_run *part);
/* Forgets all points, but not the series and their memory. */
void scalar_run_empty(struct scalar_run *r);

/* Sorts the series by tag (as bytes); their order of appearance is lost. */
void scalar_run_sort(struct scalar_run *r);
/* Sorts points by step, equal steps in reading order; leaves a sorted series alone. OK or ERR_NOMEM. */
int scalar_series_sort(struct scalar_series *s, struct error *e);

/* Gives back the memory behind the last point. */
void scalar_series_fit(struct scalar_series *s);
/* Frees points that were taken out of a series, with its `mapped`. */
void scalar_points_free(void *points, size_t mapped);

/* SCALAR_* of point i. */
unsigned scalar_series_from(const struct scalar_series *s, size_t i);

#endif
