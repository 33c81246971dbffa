/* gather.h - the points of whole runs, for commands that need a run before they say something. */
#ifndef EVENTLOG_TOOL_GATHER_H
#define EVENTLOG_TOOL_GATHER_H

#include "eventlog/read/scalar_series.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"

struct gather {
    enum scalar_view view;
    int no_points;              /* series are only counted: their points are not wanted */
    struct point_range range;   /* points outside are left out */
    /* A run has been read: series by tag, points in reading order. Those that are not wanted have no points, and seen
     * and skipped are 0. Not OK ends it. */
    int (*run)(void *context, const char *name, struct scalar_run *scalars, struct error *e);
    /* Values that are no points, as scalar_run hands them out, and: forget them, the run is read again. May be NULL. */
    int (*other)(void *context, const struct scalar_series *s, const struct event *event,
                 const struct event_value *value, struct error *e);
    void (*again)(void *context);
    void *context;
};

/* Reads the runs of s that are wanted, in order. OK, or what a function returned. */
int gather_runs(struct scan *s, const struct gather *g, struct error *e);

/* Reads one run into scalars, which has been inited, and finishes it. again: as above. */
int gather_run(struct scan *s, const struct log_run *run, struct scalar_run *scalars, void (*again)(void *context),
               void *context, struct error *e);

/* Closes what a command wrote: a file takes its place where rc is OK and all of the log could be read. Returns the
 * status; rc has its sentence in e; matched: something was found. */
int gather_finish(struct scan *s, struct output *out, int rc, int matched, struct error *e);

/* Takes out the points outside the range; finite: also those whose value is no finite number. */
void gather_sift(struct scalar_series *s, const struct point_range *range, int finite);

#endif
