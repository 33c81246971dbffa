#include "eventlog/tool/gather.h"

#include <string.h>

struct work {
    const struct gather *gather;
    struct scalar_run scalars;
};

static void begin_file(void *context, const char *path)
{
    struct work *w = context;

    (void)path;
    scalar_run_begin_file(&w->scalars);
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct work *w = context;

    return scalar_run_event(&w->scalars, ev, e);
}

static void damage(void *context, const struct event_damage *d)
{
    struct work *w = context;

    (void)d;
    scalar_run_damage(&w->scalars);
}

static void restart(void *context)
{
    struct work *w = context;

    scalar_run_restart(&w->scalars);
    if (w->gather->again)
        w->gather->again(w->gather->context);
}

static void sift(struct work *w, const struct scan *s)
{
    for (size_t i = 0; i < w->scalars.count; i++) {
        struct scalar_series *series = &w->scalars.series[i];
        size_t kept = 0;

        if (!scan_tag_wanted(s, series->tag))
            series->count = series->seen = series->skipped = 0;
        for (size_t k = 0; k < series->count; k++) {
            if (series->points[k].step < w->gather->from_step || series->points[k].step > w->gather->to_step)
                continue;
            series->points[kept] = series->points[k];
            if (series->marks)
                series->marks[kept] = series->marks[k];
            kept++;
        }
        series->count = kept;
    }
}

int gather_runs(struct scan *s, const struct gather *g, struct error *e)
{
    struct work w = { .gather = g };
    const struct scan_sink sink = { &w, begin_file, event, damage, NULL, restart };
    int rc = OK;

    for (size_t i = 0; i < s->directory.count && rc == OK; i++) {
        if (!scan_run_wanted(s, s->directory.runs[i].name))
            continue;
        scalar_run_init(&w.scalars, g->view, 0, !g->no_points);
        w.scalars.other = g->other;
        w.scalars.context = g->context;
        rc = scan_run(s, &s->directory.runs[i], &sink, e);
        scalar_run_finish(&w.scalars);
        sift(&w, s);
        scalar_run_sort(&w.scalars);
        if (rc == OK)
            rc = g->run(g->context, s->directory.runs[i].name, &w.scalars, e);
        scalar_run_release(&w.scalars);
    }
    return rc;
}
