/*
 * scan_runs.h - reads the runs of a log, as many at the same time as the process may use cores, and gives them to the
 * command in order, with their messages, so that nothing that a command prints depends on the number of threads.
 *
 * A single run, or all on one core, is read by the caller, run by run, and its messages are written at once.
 */
#ifndef EVENTLOG_TOOL_SCAN_RUNS_H
#define EVENTLOG_TOOL_SCAN_RUNS_H

#include "eventlog/tool/scan.h"

#include <stddef.h>
#include <stdint.h>

struct scan_runs {
    size_t size; /* of what is collected about one run: `one`, all zero before each run */
    /* Reads the run with scan_run() on this s, a part of the command's, into `one`. By any thread, for several runs at
     * the same time. */
    int (*read)(void *context, struct scan *s, const struct log_run *run, void *one, struct error *e);
    /* The run has been read. By the caller's thread, in order; a result other than OK ends the reading. */
    int (*take)(void *context, const struct log_run *run, void *one, struct error *e);
    void (*release)(void *context, void *one); /* what read() put there, also after an error */
    void *context;
    int one_by_one;      /* 1: read one run after the other */
    uint64_t bytes_most; /* at most so many bytes, as stored, of runs that were read and not taken, unless one alone has
                          * more; 0: no limit */
};

/* Reads the wanted runs of s. OK, or the first result of read() or take() that is not. */
int scan_runs(struct scan *s, const struct scan_runs *calls, struct error *e);

#endif
