/* point_range.h - selects points by step and time. */
#ifndef EVENTLOG_TOOL_POINT_RANGE_H
#define EVENTLOG_TOOL_POINT_RANGE_H

#include "base/error.h"
#include "base/program/options.h"
#include "base/program/time_text.h"

#include <stdint.h>

struct point_range {
    int64_t from_step, to_step; /* both included */
    const char *since_text;     /* --since; NULL: points of all times */
    double since;               /* seconds since 1970, once the range is settled */
};

#define POINT_RANGE_ALL \
    { \
        .from_step = INT64_MIN, .to_step = INT64_MAX \
    }

/* Rows of a table. */
#define POINT_RANGE_OPTIONS(r) \
    { OPTION_INT, 0, "from-step", &(r).from_step, .argument = "N", .help = "Take only points at step N and later" }, \
        { OPTION_INT, 0, "to-step", &(r).to_step, .argument = "N", .help = "Take only points at step N and earlier" }, \
    { \
        OPTION_TEXT, 0, "since", &(r).since_text, \
            .argument = "TIME", \
            .help = "Take only points written at or after TIME: how long ago (2h, 30min, 1d12h), a date and time " \
                    "(2026-11-01T10:00, local time unless Z or +01:00 follows), or @SECONDS since 1970" \
    }

/* Call it once the command line is parsed. ERR_ARG: --from-step is after --to-step, or --since is not a time. */
int point_range_settle(struct point_range *r, struct error *e);

static inline int point_range_holds(const struct point_range *r, int64_t step, double wall_time)
{
    return step >= r->from_step && step <= r->to_step && (!r->since_text || time_in_seconds(wall_time) >= r->since);
}

static inline int point_range_is_all(const struct point_range *r)
{
    return r->from_step == INT64_MIN && r->to_step == INT64_MAX && !r->since_text;
}

#endif
