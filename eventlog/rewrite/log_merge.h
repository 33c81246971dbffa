/*
 * log_merge.h - which values of several event files make one run, and in which order, so that TensorBoard's default
 * loader drops none of them: it forgets the points of a series from the step on at which a later one stands. Pure: fed
 * with what stands in the files, in reading order; gives places in them. Memory: 32 bytes a value, for a while twice
 * that where values are not in order already. One thread at a time.
 *
 * What a restart is: a later file (of the same run, in byte order of names) in which a series begins at or below the
 * last step that it has in an earlier one, and whose points of it are all later in time; or a session start
 * (SessionLog START) at step s, which means all series of the run. Points of two files whose times overlap come from
 * two writers at work together: they are ordered by step, and only equal steps are in each other's way.
 */
#ifndef EVENTLOG_REWRITE_LOG_MERGE_H
#define EVENTLOG_REWRITE_LOG_MERGE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum log_merge_overlap {
    LOG_MERGE_LAST,  /* the restart counts: points from before it at its steps and beyond are left out */
    LOG_MERGE_FIRST, /* what was first counts: points of a restart up to the last step before it are left out */
    LOG_MERGE_KEEP,  /* all stay, in order of steps: of equal ones the default loader shows the last */
    LOG_MERGE_ERROR, /* ERR_ARG where a step comes twice or a series goes back */
};

enum log_merge_mark { /* events that are no values of a series */
    LOG_MERGE_SESSION,       /* a session mark of any kind: stays, before all else of its step */
    LOG_MERGE_SESSION_START, /* the same, and a restart */
    LOG_MERGE_GRAPH,         /* the last one stays */
    LOG_MERGE_META_GRAPH,    /* the last one stays */
    LOG_MERGE_OTHER,         /* stays */
};

enum { LOG_MERGE_EVENT = 0xffffffff }; /* item.value of an event that is no summary */

struct log_merge_item {
    int64_t step;
    uint64_t offset; /* of the record in its file */
    uint32_t file;   /* number of the log_merge_file() call, from 0 */
    uint32_t value;  /* number of the value in its record, or LOG_MERGE_EVENT */
    uint32_t series, span; /* private */
};

struct log_merge;

/* On OK *out is yours: log_merge_free(), NULL is fine. */
int log_merge_new(struct log_merge **out, enum log_merge_overlap overlap, struct error *e);
void log_merge_free(struct log_merge *m);

/* The next file begins. run: a number for the run that it belongs to; name: of that run, for sentences; borrowed. */
int log_merge_file(struct log_merge *m, size_t run, const char *name, struct error *e);

/* A value of the file. ERR_ARG: another run has a series of that tag; only those that TensorBoard wants once in a run
 * (hyperparameters, the layout of custom scalars) may be in several: the first experiment and session start and the
 * last session end and layout stay. */
int log_merge_value(struct log_merge *m, uint64_t offset, uint32_t number, const char *tag, size_t n, int64_t step,
                    double wall_time, struct error *e);
/* The profile of a step, a series like others; the event holds nothing else. */
int log_merge_run_metadata(struct log_merge *m, uint64_t offset, const char *tag, size_t n, int64_t step,
                           double wall_time, struct error *e);
int log_merge_event(struct log_merge *m, uint64_t offset, enum log_merge_mark mark, int64_t step, struct error *e);

/* All files are read: decides and sorts. */
int log_merge_finish(struct log_merge *m, struct error *e);

/* After finish: what stays, in the order of the new file. Values of one record stand together. Borrowed. */
const struct log_merge_item *log_merge_items(const struct log_merge *m, size_t *count);

struct log_merge_totals {
    uint64_t values;     /* seen, events as well */
    uint64_t restarted;  /* left out because of restarts */
    uint64_t doubled;    /* left out because of another value of the series at the step */
    uint64_t repeated;   /* graphs, hyperparameters, layouts beyond the one that a run has */
    uint64_t restarts;   /* series and file with a restart */
    uint64_t interleaved; /* pairs of files with a series whose times overlap */
};
struct log_merge_totals log_merge_totals(const struct log_merge *m);

#endif
