#include "trainer/timing/rate.h"

#include <math.h>

#define WINDOW_SECONDS 10

void rate_start(struct rate *r, int64_t step, double now)
{
    *r = (struct rate){ step, step, now, now, 0 };
}

void rate_step(struct rate *r, int64_t step, double now)
{
    r->step = step;
    r->at = now;
    if (now - r->from_at < WINDOW_SECONDS)
        return;
    r->before = (double)(step - r->from) / (now - r->from_at);
    r->from = step;
    r->from_at = now;
}

double rate_per_second(const struct rate *r)
{
    if (r->before > 0)
        return r->before;
    return r->at > r->from_at ? (double)(r->step - r->from) / (r->at - r->from_at) : 0;
}

double rate_left(const struct rate *r, int64_t max_steps, double now)
{
    const double speed = rate_per_second(r), left = (double)(max_steps - r->step) / speed - (now - r->at);

    return !(speed > 0) ? INFINITY : left > 0 ? left : 0;
}
