/* eventlog stats: prints statistics of each series, or which series have diverged. */
#include "eventlog/tool/command.h"
#include "eventlog/tool/report/report.h"

#include <math.h>
#include <string.h>

struct stats_work {
    struct report *report;
    struct scan *scan;
    int relative;  /* times since the run began */
    int diverging; /* --diverged */
    uint64_t series, points, nan, infinite, diverged, recovered;
};

/* ---- figures of a series --------------------------------------------------------------------------------------- */

struct stats_figures {
    size_t count, nan, infinite, finite;
    struct eventlog_point first, last, min, max; /* min, max: ignoring NaN, the first of equal values */
    double mean, std;                            /* of finite values; std over n - 1 */
};

static void compute(const struct scalar_series *s, struct stats_figures *f)
{
    double sum = 0, squares = 0;

    memset(f, 0, sizeof *f);
    f->count = s->count;
    f->first = s->points[0];
    f->last = s->points[s->count - 1];
    for (size_t i = 0; i < s->count; i++) {
        const struct eventlog_point *p = &s->points[i];

        if (isnan(p->value)) {
            f->nan++;
            continue;
        }
        if (i == f->nan) /* the first that is none */
            f->min = f->max = *p;
        if (p->value < f->min.value)
            f->min = *p;
        if (p->value > f->max.value)
            f->max = *p;
        if (isfinite(p->value)) {
            sum += p->value;
            f->finite++;
        }
    }
    f->infinite = f->count - f->nan - f->finite;
    f->mean = sum / (double)f->finite;
    for (size_t i = 0; i < s->count; i++)
        if (isfinite(s->points[i].value))
            squares += (s->points[i].value - f->mean) * (s->points[i].value - f->mean);
    f->std = sqrt(squares / (double)(f->finite - 1));
}

static const struct report_column columns[] = {
    { .key = "run", .cut = 10 },
    { .key = "tag", .cut = 12 },
    { .key = "count", .kind = REPORT_NUMBER },
    { .key = "nan_count", .kind = REPORT_NUMBER },
    { .key = "first_step", .title = "first step", .kind = REPORT_NUMBER, .leave_out = 12 },
    { .key = "first", .kind = REPORT_NUMBER, .leave_out = 9, .value = 1 },
    { .key = "last_step", .title = "last step", .kind = REPORT_NUMBER, .leave_out = 8 },
    { .key = "last", .kind = REPORT_NUMBER, .value = 1 },
    { .key = "min_step", .title = "at step", .kind = REPORT_NUMBER, .leave_out = 4 },
    { .key = "min", .kind = REPORT_NUMBER, .leave_out = 3, .value = 1 },
    { .key = "max_step", .title = "at step", .kind = REPORT_NUMBER, .leave_out = 4 },
    { .key = "max", .kind = REPORT_NUMBER, .leave_out = 3, .value = 1 },
    { .key = "mean", .kind = REPORT_NUMBER, .leave_out = 10, .value = 1 },
    { .key = "std", .kind = REPORT_NUMBER, .leave_out = 11 },
    { .key = "points", .kind = REPORT_NUMBER, .leave_out = 2 },
    { .key = "nan", .kind = REPORT_NUMBER, .leave_out = 1, .if_any = 1 },
    { .key = "inf", .kind = REPORT_NUMBER, .leave_out = 5, .if_any = 1 },
    { .key = "first_wall_time", .title = "first time", .kind = REPORT_TIME, .leave_out = 13 },
    { .key = "last_wall_time", .title = "last time", .kind = REPORT_TIME, .leave_out = 6 },
};

/* Without --time CSV has the columns that it always had. */
#define CSV "run tag count nan_count first_step first last_step last min_step min max_step max mean std"
#define PEOPLE "run tag points nan inf first_step first last_step last min min_step max max_step mean std"
#define TIMES " first_wall_time last_wall_time"

static struct report_layout stats_layout(int times)
{
    return (struct report_layout){
        .type = "stats",
        .rows = "series",
        .columns = columns,
        .count = sizeof columns / sizeof *columns,
        .csv = times ? CSV TIMES : CSV,
        .people = times ? PEOPLE TIMES : PEOPLE,
    };
}

static void add_stats(struct stats_work *w, const char *run, const struct scalar_run *scalars,
                      const struct scalar_series *s)
{
    double began = w->relative ? scalars->began : 0;
    struct report *r = w->report;
    struct stats_figures f;

    compute(s, &f);
    report_word(r, run);
    report_text(r, s->tag, s->tag_length);
    report_count(r, f.count);
    report_count(r, f.nan);
    report_point(r, &f.first);
    report_point(r, &f.last);
    report_point(r, f.nan < f.count ? &f.min : NULL);
    report_point(r, f.nan < f.count ? &f.max : NULL);
    report_number_if(r, f.finite > 0, f.mean);
    report_number_if(r, f.finite > 1, f.std);
    report_count(r, f.count);
    report_count(r, f.nan);
    report_count(r, f.infinite);
    report_number(r, f.first.wall_time - began);
    report_number(r, f.last.wall_time - began);
    w->points += f.count;
    w->nan += f.nan;
    w->infinite += f.infinite;
}

/* ---- divergence ------------------------------------------------------------------------------------------------ */

static const struct report_column divergence_columns[] = {
    { .key = "run", .cut = 10 },
    { .key = "tag", .cut = 12 },
    { .key = "state" },
    { .key = "value", .kind = REPORT_NUMBER },
    { .key = "since_step", .title = "since step", .kind = REPORT_NUMBER },
    { .key = "since_wall_time", .title = "since", .kind = REPORT_TIME, .leave_out = 1 },
    { .key = "points", .kind = REPORT_NUMBER, .leave_out = 3 },
    { .key = "last_finite_step", .title = "last finite step", .kind = REPORT_NUMBER, .leave_out = 4 },
    { .key = "last_finite", .title = "last finite", .kind = REPORT_NUMBER, .leave_out = 2 },
};

static const struct report_layout divergence = {
    .type = "diverged",
    .rows = "series",
    .columns = divergence_columns,
    .count = sizeof divergence_columns / sizeof *divergence_columns,
};

/* A row for a series with points that are not finite: about those at its end, or else about the first ones. */
static void add_divergence(struct stats_work *w, const char *run, const struct scalar_run *scalars,
                           const struct scalar_series *s)
{
    size_t from = s->count, to = s->count;
    struct report *r = w->report;

    while (from && !isfinite(s->points[from - 1].value))
        from--;
    if (from == s->count) { /* it ends well: the first that are not finite */
        for (from = 0; from < s->count && isfinite(s->points[from].value);)
            from++;
        for (to = from; to < s->count && !isfinite(s->points[to].value);)
            to++;
    }
    if (from == s->count)
        return;
    w->diverged += to == s->count;
    w->recovered += to < s->count;
    report_word(r, run);
    report_text(r, s->tag, s->tag_length);
    report_word(r, to == s->count ? "diverged" : "recovered");
    report_number(r, s->points[from].value);
    report_integer(r, s->points[from].step);
    report_number(r, s->points[from].wall_time - (w->relative ? scalars->began : 0));
    report_count(r, to - from);
    report_point(r, from ? &s->points[from - 1] : NULL);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int stats_of_run(void *context, const char *name, struct scalar_run *scalars, struct error *e)
{
    struct stats_work *w = context;

    (void)e;
    for (size_t i = 0; i < scalars->count; i++)
        if (scalars->series[i].count) {
            (w->diverging ? add_divergence : add_stats)(w, name, scalars, &scalars->series[i]);
            w->series++;
        }
    return OK;
}

static int write_stats(struct stats_work *w, const struct gather *g, const struct report_options *o, struct error *e)
{
    const struct report_layout stats = stats_layout(o->time != NULL);
    int status, rc = report_open(&w->report, w->diverging ? &divergence : &stats, o, e);

    if (rc != OK)
        return scan_fail(w->scan, e);
    rc = gather_runs(w->scan, g, e);
    report_total(w->report, "series", w->series);
    if (w->diverging) {
        report_total(w->report, "diverged", w->diverged);
        report_total(w->report, "recovered", w->recovered);
    } else {
        report_total(w->report, "points", w->points);
        report_total(w->report, "nan", w->nan);
        report_total(w->report, "inf", w->infinite);
    }
    report_total(w->report, "damage", w->scan->damaged);
    status = report_finish(w->report, w->scan, rc, w->series > 0, e);
    return status == EXIT_DONE && w->diverged ? EXIT_NO : status;
}

int command_stats(int argc, char **argv)
{
    static const struct output_format formats[] = { REPORT_FORMATS };
    struct report_options o = { .sort = NULL };
    struct scan s = { .failed = 0 };
    struct stats_work w = { .scan = &s };
    struct gather g = { .range = POINT_RANGE_ALL, .run = stats_of_run, .context = &w };
    const char *view = "all";
    struct option table[] = {
        SCAN_RUN_OPTION(s),
        SCAN_TAG_OPTION(s),
        POINT_RANGE_OPTIONS(g.range),
        SCAN_VIEW_OPTION(view),
        { OPTION_FLAG, 0, "diverged", &w.diverging,
          .help = "List only series with NaN or infinite values, and since when: 'diverged' if the last value is one "
                  "of these, else 'recovered'. Exit with status 1 if a series has diverged" },
        REPORT_OPTIONS(o),
        REPORT_TIME_OPTION(o.time, "Add the times of the first and the last point: seconds since 1970, ISO 8601, local "
                                   "time, or seconds since the run's first point"),
        OUTPUT_OPTIONS(o.to, REPORT_WORDS, "text on a terminal and csv elsewhere",
                       "Print a table, or a row or an object for each series"),
    };
    const struct options options = {
        .program = "eventlog stats",
        .usage = "[OPTION...] PATH...",
        .summary =
            "Print statistics of every scalar series: the number of points and of NaNs; the first and the last point "
            "in reading order; the minimum and the maximum with the step where each first occurs; mean and standard "
            "deviation (over n - 1) of the finite values. A table leaves out the columns that do not fit the terminal. "
            "Exit status: 0 done; 1 nothing matched, damage, or diverged series; 2 usage or I/O.",
        .examples = "  eventlog stats logs --tag accuracy --sort last:desc --top 5    the five best runs\n"
                    "  eventlog stats logs --diverged    which runs have diverged, and since when\n"
                    "  eventlog stats logs -o stats.html    a page to sort by a click\n"
                    "  eventlog stats logs --json | jq -r '.series[] | select(.nan > 0) | .run + \" \" + .tag'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = report_settle(&o, formats, sizeof formats / sizeof *formats, "csv", &e);
    if (rc == OK)
        rc = point_range_settle(&g.range, &e);
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    g.view = scalar_view_of(view);
    w.relative = o.time && !strcmp(o.time, "relative");
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_stats(&w, &g, &o, &e);
    scan_close(&s);
    return status;
}
