/* export_options.h - the command line of `eventlog export`. */
#ifndef EVENTLOG_TOOL_EXPORT_EXPORT_OPTIONS_H
#define EVENTLOG_TOOL_EXPORT_EXPORT_OPTIONS_H

#include "base/error.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"

#include <stdint.h>

struct export_options {
    const char *log; /* the first path */
    struct output_options to; /* its format may be "media", too */
    const char *view, *duplicate, *order, *float32, *columns, *nonfinite, *step, *prom_prefix,
    *ops, *media, *kinds, *time;
    int tsv, crlf, no_run, wall_time, multirun, lax_tags, events;
    struct point_range range;
    int64_t min_runs; /* min_runs 0: all that have the tag */
};

/* scan_begin() with argv into *a, and the globs into *s. OPTIONS_RUN with the paths in argv[1..*paths], OPTIONS_DONE,
 * or ERR_ARG: also for an option that the format does not know. */
int export_options_parse(struct export_options *a, struct scan *s, int argc, char **argv, int *paths,
                         struct error *e);

#endif
