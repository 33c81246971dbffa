/*
 * log_merge.h - chooses and orders the values of several event files that make one run, so that TensorBoard's default
 * loader drops none of them: when a step comes again, it forgets the points of the series from that step on. Pure:
 * takes the contents of the files in reading order and returns places in them. Memory: 32 bytes per value, temporarily
 * twice that if values are not in order already. One thread at a time.
 *
 * A restart is a later file (of the same run, in byte order of names) in which a series begins at or below its last
 * step in an earlier file, with points that are all later in time; or a session start (SessionLog START) at step s,
 * which restarts all series of the run. If the times of two files overlap, two writers were at work together: their
 * points are ordered by step, and only points at equal steps conflict.
 */
#ifndef EVENTLOG_REWRITE_LOG_MERGE_H
#define EVENTLOG_REWRITE_LOG_MERGE_H

#include "base/error.h"
#include "eventlog/eventlog.h"

#include <stddef.h>
#include <stdint.h>

/* events that are not values of a series */
enum log_merge_mark {
    LOG_MERGE_SESSION,       /* a session mark of any kind: stays, before everything else at its step */
    LOG_MERGE_SESSION_START, /* the same, and a restart */
    LOG_MERGE_GRAPH,         /* the last one stays */
    LOG_MERGE_META_GRAPH,    /* the last one stays */
    LOG_MERGE_OTHER,         /* stays */
};

enum { LOG_MERGE_EVENT = 0xffffffff }; /* item.value of an event that is not a summary */

struct log_merge_item {
    int64_t step;
    uint64_t offset;       /* of the record in its file */
    uint32_t file;         /* number of the log_merge_file() call, from 0 */
    uint32_t value;        /* number of the value in its record, or LOG_MERGE_EVENT */
    uint32_t series, span; /* private */
};

struct log_merge;

/* On OK *out is yours: log_merge_free(), NULL is fine. */
int log_merge_new(struct log_merge **out, enum eventlog_overlap overlap, struct error *e);
void log_merge_free(struct log_merge *m);

/* The next file begins. run: the number of the run that it belongs to; name: that run's name, for errors; borrowed. */
int log_merge_file(struct log_merge *m, size_t run, const char *name, struct error *e);

/* A value of the file. ERR_ARG: another run has a series with this tag. Only tags that TensorBoard wants once per run
 * (hyperparameters, the layout of custom scalars) may be in several runs: the first experiment and session start and
 * the last session end and layout stay. */
int log_merge_value(struct log_merge *m, uint64_t offset, uint32_t number, const char *tag, size_t n, int64_t step,
                    double wall_time, struct error *e);
/* The profile of a step: a value of a series like any other; the event holds nothing else. */
int log_merge_run_metadata(struct log_merge *m, uint64_t offset, const char *tag, size_t n, int64_t step,
                           double wall_time, struct error *e);
int log_merge_event(struct log_merge *m, uint64_t offset, enum log_merge_mark mark, int64_t step, struct error *e);

/* All files have been read: decides and sorts. */
int log_merge_finish(struct log_merge *m, struct error *e);

/* After finish: what stays, in the order of the new file. Values of one record are adjacent. Borrowed. */
const struct log_merge_item *log_merge_items(const struct log_merge *m, size_t *count);

/* What has been left out, and why; values: seen, including events. The rest of it is 0. */
struct eventlog_merged log_merge_totals(const struct log_merge *m);

#endif
