#include "trainer/timing/straggler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NANOSECONDS 1000000000
enum { LOOK_STEPS = 3 };

static double busy_per_step(const struct phase_times *t)
{
    return (double)phase_times_busy(t) / (double)t->steps;
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/* The phase in which worker r takes most longer than those that are not slow do on average. */
static enum phase lost_in(const struct phase_times *workers, int count, int r, double limit)
{
    enum phase most = PHASE_OTHER;
    double lost = -1;

    for (int p = 0; p < PHASE_COUNT; p++) {
        double sum = 0, n = 0, more;

        if (p == PHASE_WAITING)
            continue;
        for (int k = 0; k < count; k++)
            if (workers[k].steps > 0 && busy_per_step(&workers[k]) < limit) {
                sum += (double)workers[k].nanoseconds[p] / (double)workers[k].steps;
                n++;
            }
        more = (double)workers[r].nanoseconds[p] / (double)workers[r].steps - (n > 0 ? sum / n : 0);
        if (more > lost) {
            lost = more;
            most = (enum phase)p;
        }
    }
    return most;
}

void straggler_find(struct straggler *out, const struct phase_times *workers, int count, int synchronous, double *room)
{
    double slowest, median, limit, rest = 0, step;
    int known = 0, r = 0;

    *out = (struct straggler){ .worker = -1, .since = -1 };
    for (int k = 0; k < count; k++)
        if (workers[k].steps > 0) {
            room[known++] = busy_per_step(&workers[k]);
            r = room[known - 1] > (known > 1 ? busy_per_step(&workers[r]) : -1) ? k : r;
        }
    if (known < 2)
        return;
    qsort(room, (size_t)known, sizeof *room, descending);
    slowest = room[0];
    median = room[1 + (known - 1) / 2]; /* of the others, the lower one in the middle */
    limit = (median + slowest) / 2;
    if (median <= 0 || slowest < STRAGGLER_RATIO * median)
        return;
    for (int k = 0; k < count; k++) {
        const double busy = workers[k].steps > 0 ? busy_per_step(&workers[k]) : 0;

        if (busy >= limit)
            out->slow++;
        else if (busy > rest)
            rest = busy;
    }
    step = (double)phase_times_total(&workers[r]) / (double)workers[r].steps;
    out->cost = synchronous ? (slowest - rest) / step : 0;
    if (synchronous && out->cost < STRAGGLER_COST) {
        out->slow = 0;
        return;
    }
    out->worker = r;
    out->ratio = slowest / median;
    out->phase = lost_in(workers, count, r, limit);
}

void straggler_text(struct buffer *out, const struct straggler *s, const char *name, int past)
{
    buffer_format(out, "%s %s %.1f times slower than the others", name, past ? "was" : "is", s->ratio);
    if (s->since >= 0)
        buffer_format(out, " since step %" PRId64, s->since);
    buffer_format(out, ", mostly in %s", phase_names[s->phase]);
    if (s->slow > 1)
        buffer_format(out, ", and %d more %s slow", s->slow - 1,
                      past          ? s->slow > 2 ? "were" : "was"
                      : s->slow > 2 ? "are"
                                    : "is");
    if (s->cost > 0)
        buffer_format(out, "; waiting for %s %s %.0f %% of the time", s->slow > 1 ? "them" : "it",
                      past ? "cost" : "costs", 100 * s->cost);
}

/* ---- while the run goes on --------------------------------------------------------------------------------------- */

int straggler_watch_init(struct straggler_watch *w, int workers, int synchronous, int64_t step, struct error *e)
{
    *w = (struct straggler_watch){
        .workers = workers, .synchronous = synchronous, .candidate = -1, .told = -1, .look_from = step
    };
    w->look = calloc((size_t)workers, sizeof *w->look);
    w->whole = calloc((size_t)workers, sizeof *w->whole);
    w->room = calloc((size_t)workers, sizeof *w->room);
    if (w->look && w->whole && w->room)
        return OK;
    straggler_watch_release(w);
    return error_memory(e, NULL, "to compare the times of %d workers", workers);
}

void straggler_watch_release(struct straggler_watch *w)
{
    free(w->look);
    free(w->whole);
    free(w->room);
    w->look = w->whole = NULL;
    w->room = NULL;
}

/* 1: the times of the current look are enough to judge. */
static int look_is_long(const struct straggler_watch *w)
{
    int known = 0;

    for (int r = 0; r < w->workers; r++) {
        if (w->look[r].steps == 0) /* it has ended */
            continue;
        known++;
        if (w->look[r].steps < LOOK_STEPS || phase_times_total(&w->look[r]) < LOOK_NANOSECONDS)
            return 0;
    }
    return known > 1;
}

/* Counts the look for its slowest worker, which may be none (-1). */
static void keep_look(struct straggler_watch *w, int slowest)
{
    if (slowest != w->candidate) {
        memset(w->whole, 0, (size_t)w->workers * sizeof *w->whole);
        w->candidate = slowest;
        w->candidate_from = w->look_from;
        w->looks = 0;
    }
    for (int r = 0; r < w->workers; r++)
        phase_times_add(&w->whole[r], &w->look[r]);
    w->looks++;
}

enum straggler_news straggler_watch_add(struct straggler_watch *w, const struct phase_times *times, int64_t step,
                                        struct straggler *out)
{
    struct straggler now;

    for (int r = 0; r < w->workers; r++)
        phase_times_add(&w->look[r], &times[r]);
    if (!look_is_long(w))
        return STRAGGLER_NOTHING;
    straggler_find(&now, w->look, w->workers, w->synchronous, w->room);
    keep_look(w, now.worker);
    memset(w->look, 0, (size_t)w->workers * sizeof *w->look);
    w->look_from = step;
    if (w->looks < STRAGGLER_LOOKS)
        return STRAGGLER_NOTHING;
    if (w->candidate < 0) {
        *out = (struct straggler){ .worker = w->told, .since = w->candidate_from };
        w->told = -1;
        return out->worker < 0 ? STRAGGLER_NOTHING : STRAGGLER_OVER;
    }
    straggler_find(out, w->whole, w->workers, w->synchronous, w->room);
    if (out->worker != w->candidate || (w->told == out->worker && out->cost < w->told_cost + STRAGGLER_AGAIN))
        return STRAGGLER_NOTHING;
    out->since = w->candidate_from;
    w->told = out->worker;
    w->told_cost = out->cost;
    return STRAGGLER_SLOW;
}
