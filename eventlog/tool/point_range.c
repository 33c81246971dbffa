#include "eventlog/tool/point_range.h"

#include "base/clock.h"
#include "base/program/time_text.h"

int point_range_settle(struct point_range *r, struct error *e)
{
    if (r->from_step > r->to_step)
        return error_set(e, ERR_ARG, "--from-step %lld is after --to-step %lld; swap them", (long long)r->from_step,
                         (long long)r->to_step);
    if (r->since_text && !time_parse(r->since_text, clock_wall(), &r->since))
        return error_set(e, ERR_ARG, "--since '%.60s' is not a time; write 2h, 30min, 2026-11-01T10:00 or @1700000000",
                         r->since_text);
    return OK;
}
