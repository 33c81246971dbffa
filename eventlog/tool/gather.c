#include "eventlog/tool/gather.h"

#include <math.h>

struct work {
    struct scalar_run *scalars;
    void (*again)(void *context);
    void *context;
};

static void begin_file(void *context, const char *path)
{
    struct work *w = context;

    (void)path;
    scalar_run_begin_file(w->scalars);
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct work *w = context;

    return scalar_run_event(w->scalars, ev, e);
}

static int damage(void *context, const struct event_damage *d, struct error *e)
{
    struct work *w = context;
    struct event ev;

    return scalar_run_damage(w->scalars, d, &ev) ? scalar_run_event(w->scalars, &ev, e) : OK;
}

static void restart(void *context)
{
    struct work *w = context;

    scalar_run_restart(w->scalars);
    if (w->again)
        w->again(w->context);
}

int gather_run(struct scan *s, const struct log_run *run, struct scalar_run *scalars, void (*again)(void *context),
               void *context, struct error *e)
{
    struct work w = { scalars, again, context };
    const struct scan_sink sink = { &w, begin_file, event, damage, NULL, restart };
    int rc = scan_run(s, run, &sink, e);

    scalar_run_finish(scalars);
    return rc;
}

void gather_sift(struct scalar_series *s, const struct point_range *range, int finite)
{
    size_t kept = 0;

    if (point_range_is_all(range) && !finite)
        return;
    for (size_t i = 0; i < s->count; i++) {
        const struct scalar_point *p = &s->points[i];

        if (!point_range_holds(range, p->step, p->wall_time) || (finite && !isfinite(p->value)))
            continue;
        if (kept < i) {
            s->points[kept] = *p;
            if (s->marks)
                s->marks[kept] = s->marks[i];
        }
        kept++;
    }
    s->count = kept;
}

int gather_runs(struct scan *s, const struct gather *g, struct error *e)
{
    struct scalar_run scalars;
    int rc = OK;

    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(s, run));) {
        scalar_run_init(&scalars, g->view, 0, !g->no_points);
        scalars.other = g->other;
        scalars.context = g->context;
        rc = gather_run(s, run, &scalars, g->again, g->context, e);
        for (size_t k = 0; k < scalars.count; k++) {
            struct scalar_series *series = &scalars.series[k];

            if (!scan_tag_wanted(s, series->tag))
                series->count = series->seen = series->skipped = 0;
            gather_sift(series, &g->range, 0);
        }
        scalar_run_sort(&scalars);
        if (rc == OK)
            rc = g->run(g->context, run->name, &scalars, e);
        scalar_run_release(&scalars);
    }
    return rc;
}

int gather_finish(struct scan *s, struct output *out, int rc, int matched, struct error *e)
{
    int status = scan_status(s, matched);

    if (rc == OK)
        rc = output_close(out, status != EXIT_USAGE || !output_is_file(out), e);
    else
        output_close(out, 0, NULL);
    return rc == OK ? status : scan_fail(s, e);
}
