/* eventlog export: writes all points of a log in one of the formats. */
#include "eventlog/tool/export/export.h"

#include "base/array.h"
#include "base/program/ordered_work.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/scan.h"
#include "eventlog/tool/time_option.h"

#include <stdlib.h>
#include <string.h>

/* The export of one run: what its events go through. */
struct work {
    struct scan *scan;
    struct export x;
    const struct export_format *format;
    struct export_run run;
    /* per series: its prefix and whether it is wanted */
    struct made {
        struct buffer prefix;
        int known, wanted;
    } * made;
    size_t made_count;
    int streaming;
    struct ordered_work *batches; /* NULL: points are formatted when they come */
    struct export settings;       /* x as it was when they were opened, for threads */
    int batch_failed;
};

/* Points that a thread formats while others are read: copies of them, or stretches of series that are in memory, so
 * many that a usual batch fits into the buffer of an output. */
enum { BATCH = 2048, BATCH_IN_MEMORY = 4096, STRETCHES = 64 };
struct batch {
    struct output *out; /* made when it is first used */
    uint64_t before;    /* points written before */
    size_t count;       /* of points, also those in stretches */
    size_t stretch_count;
    struct stretch {
        struct buffer prefix; /* borrowed from `made` */
        const struct scalar_series *series;
        size_t first, count;
    } stretches[STRETCHES];
    struct batch_point {
        struct buffer prefix; /* borrowed from `made` */
        struct eventlog_point point;
        unsigned from;
    } points[BATCH];
};

/* ---- one series, one point ------------------------------------------------------------------------------------- */

static struct made *made_of(struct work *w, const struct scalar_series *s, struct error *e)
{
    size_t i = (size_t)(s - w->run.scalars.series);
    struct made *m;

    if (!ARRAY_ROOM_ZERO(w->made, w->made_count, i + 1)) {
        error_memory(e, NULL, "for %zu series", i + 1);
        return NULL;
    }
    m = &w->made[i];
    if (!m->known) {
        m->known = 1;
        m->wanted = scan_tag_wanted(w->scan, s->tag);
        if (m->wanted && w->format->prefix)
            w->format->prefix(&w->x, w->run.name, s, &m->prefix);
        if (!buffer_ok(&m->prefix)) {
            error_memory(e, NULL, "for the name of a series");
            return NULL;
        }
    }
    return m;
}

static void forget_made(struct work *w)
{
    for (size_t i = 0; i < w->made_count; i++)
        buffer_release(&w->made[i].prefix);
    free(w->made);
    w->made = NULL;
    w->made_count = 0;
}

static void format_batch(void *context, void *item)
{
    const struct work *w = context;
    struct batch *b = item;
    struct export x = w->settings;

    if (!b->out && output_open_memory(&b->out, NULL) != OK)
        return;
    x.out = b->out;
    x.points = b->before;
    for (size_t i = 0; i < b->stretch_count; i++) {
        const struct stretch *s = &b->stretches[i];

        for (size_t k = s->first; k < s->first + s->count; k++, x.points++)
            w->format->point(&x, &s->prefix, &s->series->points[k], scalar_series_from(s->series, k));
    }
    for (size_t i = 0; i < b->count && !b->stretch_count; i++, x.points++)
        w->format->point(&x, &b->points[i].prefix, &b->points[i].point, b->points[i].from);
}

static void write_batch(void *context, void *item)
{
    struct work *w = context;
    struct batch *b = item;

    if (b->out)
        output_move(w->x.out, b->out);
    w->batch_failed |= !b->out;
    b->count = b->stretch_count = 0;
}

static void release_batch(void *context, void *item)
{
    struct batch *b = item;

    (void)context;
    if (b->out)
        output_close(b->out, 0, NULL);
}

/* With one core, points are written as they come: that takes less than batches of them. */
static int open_batches(struct work *w, struct error *e)
{
    const struct ordered_work_calls calls = { sizeof(struct batch), format_batch, write_batch, w, NULL };
    int rc = ordered_work_open(&w->batches, &calls, e);

    w->settings = w->x;
    if (rc == OK && !ordered_work_threads(w->batches)) {
        ordered_work_close(w->batches, NULL);
        w->batches = NULL;
    }
    return rc;
}

static void give_batch(struct work *w, struct batch *b)
{
    b->before = w->x.points - b->count;
    ordered_work_give(w->batches);
}

/* Writes what is at hand, before the names in it are forgotten. */
static int finish_batches(struct work *w, struct error *e)
{
    struct batch *b = w->batches ? ordered_work_item(w->batches) : NULL;

    if (!b)
        return OK;
    if (b->count)
        give_batch(w, b);
    ordered_work_finish(w->batches);
    return w->batch_failed ? error_memory(e, w->run.name, "for output") : OK;
}

static void add_to_batch(struct work *w, const struct made *m, const struct eventlog_point *p, unsigned from)
{
    struct batch *b = ordered_work_item(w->batches);

    b->points[b->count++] = (struct batch_point){ m->prefix, *p, from };
    w->x.points++;
    if (b->count == BATCH)
        give_batch(w, b);
}

/* All points of a series that stays in memory until the batches are finished. */
static void add_stretches(struct work *w, const struct made *m, const struct scalar_series *s)
{
    for (size_t first = 0, n; first < s->count; first += n) {
        struct batch *b = ordered_work_item(w->batches);
        const size_t left = s->count - first, room = BATCH_IN_MEMORY - b->count;

        n = left < room ? left : room;
        b->stretches[b->stretch_count++] = (struct stretch){ m->prefix, s, first, n };
        b->count += n;
        w->x.points += n;
        if (b->count == BATCH_IN_MEMORY || b->stretch_count == STRETCHES)
            give_batch(w, b);
    }
}

static void emit_wanted(struct work *w, const struct made *m, const struct eventlog_point *p, unsigned from)
{
    if (!point_range_holds(&w->x.options->range, p->step, p->wall_time))
        return;
    if (w->x.nonfinite == EXPORT_DROP && !(p->value - p->value == 0)) {
        w->x.left_out++;
        return;
    }
    if (w->batches) {
        add_to_batch(w, m, p, from);
        return;
    }
    w->format->point(&w->x, &m->prefix, p, from);
    w->x.points++;
}

static int emit(struct work *w, const struct scalar_series *s, const struct eventlog_point *p, unsigned from,
                struct error *e)
{
    const struct made *m = made_of(w, s, e);

    if (!m)
        return ERR_NOMEM;
    if (m->wanted)
        emit_wanted(w, m, p, from);
    return OK;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void export_run_again(void *context)
{
    struct work *w = context;

    w->format->run_again(&w->x);
}

static int other(void *context, const struct scalar_series *s, const struct event *ev, const struct event_value *value,
                 struct error *e)
{
    struct work *w = context;

    /* Hyperparameters belong to the run, not to a series: no choice of tags or steps leaves them out. */
    if (strcmp(s->plugin, "hparams") != 0) {
        if (!scan_tag_wanted(w->scan, s->tag) || !point_range_holds(&w->x.options->range, ev->step, ev->wall_time))
            return OK;
        w->x.skipped++;
    }
    return w->format->value ? w->format->value(&w->x, s, ev, value, e) : OK;
}

/* Straight through. */
static int stream(void *context, const struct event *ev, struct error *e)
{
    struct work *w = context;
    struct event_values values;
    const struct event_value *value;

    event_values_init(&values, ev);
    while ((value = event_values_next(&values))) {
        struct scalar_series *s;
        struct eventlog_point point;
        unsigned from;
        int rc = scalar_run_value(&w->run.scalars, ev, value, &point, &s, &from, e);

        if (rc == 1)
            rc = emit(w, s, &point, from, e);
        if (rc < 0)
            return rc;
    }
    return OK;
}

/* Reads a run into w->run (or, streaming, straight through) and tells what the view leaves out. */
static int read_run(struct work *w, const struct log_run *run, int keep_order, int store, struct error *e)
{
    /* What has been written cannot be taken back, so a stream does not start again. */
    const struct scan_sink sink = { .context = w, .event = stream };
    void (*again)(void *) = w->format->run_again ? export_run_again : NULL;
    uint64_t left_out = 0;
    int rc;

    w->x.run = w->run.name = run->name;
    scalar_run_init(&w->run.scalars, scalar_view_of(w->x.options->view), keep_order, store);
    w->run.scalars.other = other;
    w->run.scalars.context = w;
    rc = w->streaming ? scan_run(w->scan, run, &sink, e) : gather_run(w->scan, run, &w->run.scalars, again, w, e);
    if (rc != OK)
        return rc;
    for (size_t i = 0; i < w->run.scalars.count && w->run.scalars.store; i++)
        if (scan_tag_wanted(w->scan, w->run.scalars.series[i].tag))
            left_out += w->run.scalars.series[i].seen - w->run.scalars.series[i].count;
    for (size_t i = 0; i < w->run.scalars.count; i++)
        if (scan_tag_wanted(w->scan, w->run.scalars.series[i].tag))
            scan_series(w->scan, &w->run.scalars.series[i]);
    if (left_out)
        log_line(&w->scan->log, "run %s: %llu points left out by --view=%s", run->name, (unsigned long long)left_out,
                 w->x.options->view);
    if (w->run.scalars.rounded)
        log_line(&w->scan->log, "run %s: %llu whole numbers beyond 2^53 were rounded to the nearest double", run->name,
                 (unsigned long long)w->run.scalars.rounded);
    return OK;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static int write_sorted(struct work *w, struct error *e)
{
    const int drops = !point_range_is_all(&w->x.options->range) || w->x.nonfinite == EXPORT_DROP;

    scalar_run_sort(&w->run.scalars);
    for (size_t i = 0; i < w->run.scalars.count; i++) {
        struct scalar_series *s = &w->run.scalars.series[i];
        struct made *m = made_of(w, s, e);

        if (!m || scalar_series_sort(s, e) != OK)
            return ERR_NOMEM;
        if (w->batches && m->wanted && !drops)
            add_stretches(w, m, s);
        for (size_t k = 0; k < s->count && m->wanted && !(w->batches && !drops); k++)
            emit_wanted(w, m, &s->points[k], scalar_series_from(s, k));
        scan_progress(w->scan, w->run.name, 0);
    }
    return OK;
}

struct export_place {
    uint64_t mark;
    size_t series, point;
};

static int by_mark(const void *a, const void *b)
{
    const struct export_place *x = a, *y = b;

    return (x->mark > y->mark) - (x->mark < y->mark);
}

/* The points that a view kept, in the order they were read. */
static int write_in_order(struct work *w, struct error *e)
{
    struct scalar_run *r = &w->run.scalars;
    struct export_place *places;
    size_t n = 0;
    int rc = OK;

    for (size_t i = 0; i < r->count; i++)
        n += r->series[i].count;
    if (!(places = malloc((n ? n : 1) * sizeof *places)))
        return error_memory(e, NULL, "for %zu points", n);
    n = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->series[i].count; k++)
            places[n++] = (struct export_place){ r->series[i].marks[k], i, k };
    qsort(places, n, sizeof *places, by_mark);
    for (size_t i = 0; i < n && rc == OK; i++) {
        struct scalar_series *s = &r->series[places[i].series];

        rc = emit(w, s, &s->points[places[i].point], (unsigned)(places[i].mark & 0xff), e);
    }
    free(places);
    return rc;
}

/* Formats that write point by point: one run after the other, so memory holds one run at most. */
static int export_points(struct work *w, struct error *e)
{
    struct scan *s = w->scan;
    int in_order = !strcmp(w->x.options->order, "file"), rc = OK;

    w->streaming = in_order && scalar_view_of(w->x.options->view) == EVENTLOG_VIEW_ALL;
    if (w->format->begin)
        w->format->begin(&w->x);
    if ((rc = open_batches(w, e)) != OK)
        return rc;
    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(s, run));) {
        rc = read_run(w, run, in_order && !w->streaming, !w->streaming, e);
        if (rc == OK && !w->streaming)
            rc = in_order ? write_in_order(w, e) : write_sorted(w, e);
        if (rc == OK)
            rc = finish_batches(w, e);
        if (rc != OK) { /* the threads end before the names that they use */
            ordered_work_close(w->batches, release_batch);
            w->batches = NULL;
        }
        forget_made(w);
        scalar_run_release(&w->run.scalars);
    }
    ordered_work_close(w->batches, release_batch);
    w->batches = NULL;
    if (rc == OK && w->format->end)
        w->format->end(&w->x);
    return rc;
}

/* Removes unwanted points, so that the format sees only its own. */
static int sift(struct work *w, int sorted, struct error *e)
{
    struct scalar_run *r = &w->run.scalars;

    for (size_t i = 0; i < r->count; i++) {
        struct scalar_series *s = &r->series[i];

        if (!scan_tag_wanted(w->scan, s->tag))
            s->count = 0;
        w->x.left_out += gather_sift(s, &w->x.options->range, w->x.nonfinite == EXPORT_DROP);
        if (sorted && scalar_series_sort(s, e) != OK)
            return ERR_NOMEM;
    }
    return OK;
}

/* Formats that write series by series, one run after the other. */
static int export_series(struct work *w, struct error *e)
{
    int sorted = !w->format->reading_order && strcmp(w->x.options->order, "file") != 0;
    struct scan *s = w->scan;
    int rc = OK;

    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(s, run));) {
        struct scalar_run *r = &w->run.scalars;

        if ((rc = read_run(w, run, 0, w->format->series != NULL, e)) == OK)
            rc = sift(w, sorted, e);
        scalar_run_sort(r);
        if (rc == OK && w->format->run_read)
            rc = w->format->run_read(&w->x, w->run.name, r, e);
        for (size_t k = 0; k < r->count && rc == OK; k++) {
            if (!r->series[k].count || !w->format->series)
                continue;
            rc = w->format->series(&w->x, w->run.name, &r->series[k], e);
            w->x.points += r->series[k].count;
            scan_progress(s, w->run.name, 0);
        }
        scalar_run_release(r);
    }
    return rc;
}

/* Formats that need all runs before they can write anything. */
static int export_runs(struct work *w, struct error *e)
{
    struct scan *s = w->scan;
    struct export_run *runs = calloc(s->directory.count + 1, sizeof *runs);
    int sorted = strcmp(w->x.options->order, "file") != 0;
    size_t count = 0;
    int rc = runs ? OK : error_memory(e, NULL, "for %zu runs", s->directory.count);

    for (const struct log_run *run = NULL; rc == OK && (run = scan_next_run(s, run));) {
        if ((rc = read_run(w, run, 0, 1, e)) == OK)
            rc = sift(w, sorted, e);
        runs[count++] = w->run;
    }
    w->x.failed = s->failed && w->x.options->to.path;
    if (rc == OK)
        rc = w->format->runs(&w->x, runs, count, e);
    for (size_t i = 0; i < count; i++)
        scalar_run_release(&runs[i].scalars);
    free(runs);
    return rc;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static void take_options(struct export *x, const struct export_options *a)
{
    x->options = a;
    x->own = a->format_own;
    x->float32_short = !strcmp(a->float32, "short");
    x->tsv = a->tsv;
    x->between = a->tsv ? '\t' : ',';
    x->line_end = a->crlf ? "\r\n" : "\n";
    x->step_string = !strcmp(a->step, "string");
    x->duplicate = !strcmp(a->duplicate, "first")   ? EXPORT_FIRST
                   : !strcmp(a->duplicate, "mean")  ? EXPORT_MEAN
                   : !strcmp(a->duplicate, "error") ? EXPORT_ERROR
                                                    : EXPORT_LAST;
    x->time = time_option_style(a->time);
    x->nonfinite = !strcmp(a->nonfinite, "null")   ? EXPORT_NULL
                   : !strcmp(a->nonfinite, "drop") ? EXPORT_DROP
                   : !strcmp(a->nonfinite, "keep") ? EXPORT_KEEP
                                                   : EXPORT_STRING;
}

static int write_log(struct scan *s, const struct export_options *a, struct error *e)
{
    struct work w = { .scan = s, .format = a->format };
    int rc = OK, status;

    take_options(&w.x, a);
    if (!w.format->opens_files && (rc = output_open(&w.x.out, a->to.path, a->to.force, e)) != OK)
        return scan_fail(s, e);
    if (w.x.out)
        output_gzip_level(w.x.out, a->gzip_level);
    if (w.format->start)
        rc = w.format->start(&w.x, e);
    if (rc == OK)
        rc = w.format->runs ? export_runs(&w, e) : w.format->point ? export_points(&w, e) : export_series(&w, e);
    log_progress_end(&s->log);
    status = rc == OK ? scan_status(s, w.x.points > 0) : EXIT_USAGE;
    if (w.format->finish) {
        struct error late = { 0 };
        int finished = w.format->finish(&w.x, rc == OK && (status != EXIT_USAGE || !a->to.path), &late);

        if (rc == OK && (rc = finished) != OK)
            *e = late;
    }
    if (w.x.out && rc == OK)
        rc = output_close(w.x.out, status != EXIT_USAGE || !a->to.path, e);
    else if (w.x.out)
        output_close(w.x.out, 0, NULL);
    if (rc != OK)
        return scan_fail(s, e);
    if (w.x.left_out)
        log_line(&s->log, "left out %llu value%s%s", (unsigned long long)w.x.left_out, w.x.left_out == 1 ? "" : "s",
                 w.x.nonfinite == EXPORT_DROP ? " that are not finite"
                                              : " that are NaN; with --nonfinite=keep they count as NaN");
    if (w.x.unread)
        log_line(&s->log, "skipped %llu values that are not of the kind that their plugin expects",
                 (unsigned long long)w.x.unread);
    return status;
}

int command_export(int argc, char **argv)
{
    struct scan s = { .failed = 0 };
    struct export_options a;
    struct error e = { 0 };
    int count = 0, status, rc = export_options_parse(&a, &s, argc, argv, &count, &e);

    if (rc != OK)
        return scan_leave(&s, rc, &e);
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_log(&s, &a, &e);
    scan_close(&s);
    return status;
}
