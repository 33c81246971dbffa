/* export_options.h - the command line of `eventlog export`. */
#ifndef EVENTLOG_TOOL_EXPORT_EXPORT_OPTIONS_H
#define EVENTLOG_TOOL_EXPORT_EXPORT_OPTIONS_H

#include "base/error.h"
#include "eventlog/tool/export/export_format.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/point_range.h"
#include "eventlog/tool/scan.h"

struct export_options {
    const char *log;                            /* the first path */
    struct output_options to;                   /* its format may be "media", too */
    const struct export_format *format;         /* the same */
    struct export_own own[EXPORT_FORMAT_COUNT]; /* by its row in the table */
    const void *format_own;                     /* of `format` */
    const char *view, *duplicate, *order, *float32, *columns, *nonfinite, *step, *media, *kinds, *time;
    int tsv, crlf;
    int64_t gzip_level; /* of FILE.gz; 0: the usual one */
    struct point_range range;
};

/* scan_begin() with argv into *a, and the globs into *s. OPTIONS_RUN with the paths in argv[1..*paths], OPTIONS_DONE,
 * or ERR_ARG: also for an option that the format does not know. */
int export_options_parse(struct export_options *a, struct scan *s, int argc, char **argv, int *paths, struct error *e);

#endif
