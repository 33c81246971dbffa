#include "eventlog/tool/gather.h"

#include "eventlog/read/run_pieces.h"
#include "eventlog/tool/scan_runs.h"

#include <math.h>

/* Of the runs that are in memory at the same time, as stored: their points take about half as much. */
#define GATHER_BYTES_MOST ((uint64_t)256 << 20)

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

static int usual(void *context, const struct usual_event *ev)
{
    struct work *w = context;

    return scalar_run_usual(w->scalars, ev);
}

static int pieces(void *context, struct event_reader *reader, void (*passed)(void *place), void *place, struct error *e)
{
    struct work *w = context;

    return run_pieces_read(reader, w->scalars, RUN_PIECES_LENGTH, passed, place, e);
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
    const struct scan_sink sink = { &w, begin_file, event, damage, NULL, restart, pieces, usual };
    int rc = scan_run(s, run, &sink, e);

    scalar_run_finish(scalars);
    return rc;
}

size_t gather_sift(struct scalar_series *s, const struct point_range *range, int finite)
{
    size_t kept = 0, left_out = 0;

    if (point_range_is_all(range) && !finite)
        return 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct eventlog_point *p = &s->points[i];

        if (!point_range_holds(range, p->step, p->wall_time))
            continue;
        if (finite && !isfinite(p->value)) {
            left_out++;
            continue;
        }
        if (kept < i) {
            s->points[kept] = *p;
            if (s->marks)
                s->marks[kept] = s->marks[i];
        }
        kept++;
    }
    s->count = kept;
    return left_out;
}

void gather_seconds(struct scalar_run *run)
{
    run->began = time_in_seconds(run->began);
    for (size_t i = 0; i < run->count; i++)
        for (size_t k = 0; k < run->series[i].count; k++)
            run->series[i].points[k].wall_time = time_in_seconds(run->series[i].points[k].wall_time);
}

struct gathering {
    struct scan *scan;
    const struct gather *gather;
};

static int read_points(void *context, struct scan *s, const struct log_run *run, void *one, struct error *e)
{
    const struct gather *g = ((const struct gathering *)context)->gather;
    struct scalar_run *scalars = one;

    scalar_run_init(scalars, g->view, 0, !g->no_points);
    scalars->other = g->other;
    scalars->context = g->context;
    return gather_run(s, run, scalars, g->again, g->context, e);
}

static int take_points(void *context, const struct log_run *run, void *one, struct error *e)
{
    const struct gathering *w = context;
    struct scalar_run *scalars = one;

    for (size_t k = 0; k < scalars->count; k++) {
        struct scalar_series *series = &scalars->series[k];

        if (scan_tag_wanted(w->scan, series->tag))
            scan_series(w->scan, series);
        else
            series->count = series->seen = series->skipped = 0;
        gather_sift(series, &w->gather->range, 0);
    }
    scalar_run_sort(scalars);
    if (!w->gather->no_points)
        gather_seconds(scalars);
    return w->gather->run(w->gather->context, run->name, scalars, e);
}

static void release_points(void *context, void *one)
{
    (void)context;
    scalar_run_release(one);
}

int gather_runs(struct scan *s, const struct gather *g, struct error *e)
{
    struct gathering gathering = { s, g };
    /* What g->other collects is of one run at a time. */
    const struct scan_runs calls = {
        .size = sizeof(struct scalar_run),
        .read = read_points,
        .take = take_points,
        .release = release_points,
        .context = &gathering,
        .one_by_one = g->other != NULL,
        .bytes_most = g->no_points ? 0 : GATHER_BYTES_MOST,
    };

    return scan_runs(s, &calls, e);
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
