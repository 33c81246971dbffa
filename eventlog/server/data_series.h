/*
 * data_series.h - one series in an answer: what it is (its last step, its metadata), or its points, thinned if there
 * are more than were asked for. One thread at a time; the views may be those of others, too.
 */
#ifndef EVENTLOG_SERVER_DATA_SERIES_H
#define EVENTLOG_SERVER_DATA_SERIES_H

#include "eventlog/format/wire.h"
#include "eventlog/server/store/snapshot.h"
#include "eventlog/server/store/value_form.h"
#include "eventlog/server/value_source.h"

#include <stddef.h>
#include <stdint.h>

/* Nothing is appended to a longer message. */
enum { DATA_SERIES_FULL = 300 << 20 };

/* the members up to limit are set by the caller; the rest is zero at first */
struct data_series {
    struct value_source *values;
    struct span experiment; /* for the keys of blobs */
    int extremes;           /* as of series_sample.h */
    size_t limit;           /* points */
    size_t longest;         /* out: the most points given of a series; the caller may reset it */
    int failed;             /* out: memory ran out */
    size_t *counts, count;  /* out: of points, one for each series given to data_series_count() */
    /* private */
    struct value_record record;
    struct buffer steps, walls, value;
    size_t count_capacity;
};

/* Notes how many points the series has; nothing is appended. */
void data_series_count(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);

/* Each appends the field `metadata` or `data` of a TagEntry. */
void data_series_describe(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);
void data_series_describe_blobs(struct data_series *d, struct wire *w, const struct run_view *run,
                                struct series_view *v);
void data_series_scalars(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);
void data_series_tensors(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);
void data_series_blobs(struct data_series *d, struct wire *w, const struct run_view *run, struct series_view *v);

/* 1 and the blob, borrowed until the next call; 0: the point has no such blob, or it cannot be read any more. */
int data_series_blob(struct data_series *d, const struct run_view *run, struct series_view *v, size_t row,
                     uint64_t index, char digits[VALUE_FORM_DIGITS], struct span *blob);

void data_series_release(struct data_series *d);

#endif
