#include "trainer/timing/phase_clock.h"

#include "base/clock.h"

#include <string.h>

const char *const phase_names[PHASE_COUNT] = { "input",    "forward",  "backward", "waiting",
                                               "reducing", "updating", "saving",   "other" };

/* Counts up to now, which it returns. */
static int64_t count(struct phase_clock *c)
{
    const int64_t now = clock_nanoseconds();

    c->times.nanoseconds[c->phase] += now - c->counted;
    return c->counted = now;
}

static void end_phase(struct phase_clock *c, int64_t now)
{
    if (c->spans)
        span_log_add(c->spans,
                     &(struct span){ c->begun, now, c->step, (int16_t)c->phase, (int16_t)SPAN_PHASE, c->bucket });
    c->begun = now;
}

static void end_step(struct phase_clock *c, int64_t now)
{
    if (c->spans && c->times.steps > 0)
        span_log_add(c->spans, &(struct span){ c->opened, now, c->step, 0, SPAN_STEP, PHASE_NO_BUCKET });
    c->opened = now;
}

void phase_clock_start(struct phase_clock *c, enum phase phase, struct span_log *spans)
{
    memset(c, 0, sizeof *c);
    c->phase = phase;
    c->bucket = PHASE_NO_BUCKET;
    c->spans = spans;
    c->counted = c->begun = c->opened = clock_nanoseconds();
}

void phase_clock_stop(struct phase_clock *c)
{
    int64_t now;

    if (!c)
        return;
    now = count(c);
    end_phase(c, now);
    end_step(c, now);
}

enum phase phase_clock_phase(const struct phase_clock *c)
{
    return c ? c->phase : PHASE_OTHER;
}

enum phase phase_clock_enter_bucket(struct phase_clock *c, enum phase phase, int bucket)
{
    const enum phase before = c ? c->phase : phase;

    if (!c || (phase == before && bucket == c->bucket))
        return before;
    end_phase(c, count(c));
    c->phase = phase;
    c->bucket = bucket;
    return before;
}

enum phase phase_clock_enter(struct phase_clock *c, enum phase phase)
{
    return phase_clock_enter_bucket(c, phase, PHASE_NO_BUCKET);
}

void phase_clock_step(struct phase_clock *c, int64_t step, enum phase phase)
{
    int64_t now;

    if (!c)
        return;
    now = count(c);
    end_phase(c, now);
    end_step(c, now);
    c->times.steps++;
    c->step = step;
    c->phase = phase;
    c->bucket = PHASE_NO_BUCKET;
}

struct phase_times phase_clock_times(struct phase_clock *c)
{
    if (!c)
        return (struct phase_times){ 0 };
    count(c);
    return c->times;
}

struct phase_times phase_times_since(const struct phase_times *now, const struct phase_times *before)
{
    struct phase_times d = { .steps = now->steps - before->steps };

    for (int k = 0; k < PHASE_COUNT; k++)
        d.nanoseconds[k] = now->nanoseconds[k] - before->nanoseconds[k];
    return d;
}

void phase_times_add(struct phase_times *sum, const struct phase_times *t)
{
    for (int k = 0; k < PHASE_COUNT; k++)
        sum->nanoseconds[k] += t->nanoseconds[k];
    sum->steps += t->steps;
}

int64_t phase_times_total(const struct phase_times *t)
{
    int64_t sum = 0;

    for (int k = 0; k < PHASE_COUNT; k++)
        sum += t->nanoseconds[k];
    return sum;
}

int64_t phase_times_busy(const struct phase_times *t)
{
    return phase_times_total(t) - t->nanoseconds[PHASE_WAITING];
}

double phase_times_share(const struct phase_times *t, enum phase phase)
{
    const int64_t total = phase_times_total(t);

    return total > 0 ? (double)t->nanoseconds[phase] / (double)total : 0;
}
