/* gather.h - the points of whole runs, for commands that need all of a run before they can print. */
#ifndef EVENTLOG_TOOL_GATHER_H
#define EVENTLOG_TOOL_GATHER_H

#include "eventlog/read/scalar_series.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"

struct gather {
    enum eventlog_view view;
    int no_points;            /* series are only counted; their points are not kept */
    struct point_range range; /* points outside are left out */
    /* Called when a run has been read: series by tag, points in reading order. Series that are not wanted have no
     * points, and seen and skipped are 0. A result other than OK ends the reading. */
    int (*run)(void *context, const char *name, struct scalar_run *scalars, struct error *e);
    /* other: gets the values that are not points, as scalar_run passes them; again: forget them, the run is read again.
     * Either may be NULL. */
    int (*other)(void *context, const struct scalar_series *s, const struct event *event,
                 const struct event_value *value, struct error *e);
    void (*again)(void *context);
    void *context;
};

/* Reads the wanted runs of s, several at the same time unless there is `other`; the functions are called in order, by
 * the caller's thread. OK, or what a function returned. */
int gather_runs(struct scan *s, const struct gather *g, struct error *e);

/* Reads one run into scalars, which is initialised, and finishes it. again: as above. */
int gather_run(struct scan *s, const struct log_run *run, struct scalar_run *scalars, void (*again)(void *context),
               void *context, struct error *e);

/* Closes a command's output: a file is renamed into place if rc is OK and the whole log could be read. Returns the exit
 * status. e: the error of rc; matched: something was found. */
int gather_finish(struct scan *s, struct output *out, int rc, int matched, struct error *e);

/* Removes the points outside the range; finite: also those whose value is not finite. */
size_t gather_sift(struct scalar_series *s, const struct point_range *range, int finite);

/* Wall times of points, and when the run began, become seconds, whatever their unit (time_in_seconds()). */
void gather_seconds(struct scalar_run *run);

#endif
