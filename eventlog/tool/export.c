/* eventlog export: all points of a log in one of the text formats. */
#include "eventlog/tool/export.h"

#include "eventlog/tool/command.h"
#include "eventlog/tool/scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct export_format *const formats[] = { &format_csv, &format_wide, &format_json, &format_jsonl };

struct arguments {
    const char *format, *output, *view, *duplicate, *order, *float32, *columns, *nonfinite, *step;
    int force, tsv, crlf, no_run, wall_time;
};

/* The export of one run: what its events go through. */
struct work {
    struct scan *scan;
    struct export x;
    const struct export_format *format;
    struct export_run run;
    struct made { /* per series: its prefix and whether it is wanted */
        struct buffer prefix;
        int known, wanted;
    } *made;
    size_t made_count;
    int streaming;
};

/* ---- one series, one point ------------------------------------------------------------------------------------- */

static struct made *made_of(struct work *w, const struct scalar_series *s, struct error *e)
{
    size_t i = (size_t)(s - w->run.scalars.series);
    struct made *m;

    if (i >= w->made_count) {
        size_t count = i + 16;

        if (!(m = realloc(w->made, count * sizeof *m))) {
            error_set(e, ERR_NOMEM, "out of memory for %zu series", count);
            return NULL;
        }
        memset(m + w->made_count, 0, (count - w->made_count) * sizeof *m);
        w->made = m;
        w->made_count = count;
    }
    m = &w->made[i];
    if (!m->known) {
        m->known = 1;
        m->wanted = scan_tag_wanted(w->scan, s->tag);
        if (m->wanted)
            w->format->prefix(&w->x, w->run.name, s, &m->prefix);
        if (!buffer_ok(&m->prefix)) {
            error_set(e, ERR_NOMEM, "out of memory for the name of a series");
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

static int emit(struct work *w, const struct scalar_series *s, const struct scalar_point *p, unsigned from,
                struct error *e)
{
    struct made *m = made_of(w, s, e);

    if (!m)
        return ERR_NOMEM;
    if (!m->wanted || export_dropped(&w->x, p->value))
        return OK;
    w->format->point(&w->x, &m->prefix, p, from);
    w->x.points++;
    return OK;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void begin_file(void *context, const char *path)
{
    struct work *w = context;

    (void)path;
    scalar_run_begin_file(&w->run.scalars);
}

static void damage(void *context, const struct event_damage *d)
{
    struct work *w = context;

    (void)d;
    scalar_run_damage(&w->run.scalars);
}

static void restart(void *context)
{
    struct work *w = context;

    scalar_run_restart(&w->run.scalars);
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct work *w = context;
    struct event_values values;
    struct event_value value;

    if (!w->streaming)
        return scalar_run_event(&w->run.scalars, ev, e);
    event_values_init(&values, ev);
    while (event_values_next(&values, &value)) {
        struct scalar_series *s;
        struct scalar_point point;
        unsigned from;
        int rc = scalar_run_value(&w->run.scalars, ev, &value, &point, &s, &from, e);

        if (rc == 1)
            rc = emit(w, s, &point, from, e);
        if (rc < 0)
            return rc;
    }
    return OK;
}

/* Reads a run into w->run.scalars (or, streaming, straight through) and tells what the view leaves out. */
static int read_run(struct work *w, const struct log_run *run, const char *view, struct error *e)
{
    /* What has been written cannot be taken back, so a stream does not start again. */
    const struct scan_sink sink = { w, begin_file, event, damage, NULL, w->streaming ? NULL : restart };
    uint64_t left_out = 0;
    int rc = scan_run(w->scan, run, &sink, e);

    if (rc != OK)
        return rc;
    scalar_run_finish(&w->run.scalars);
    for (size_t i = 0; i < w->run.scalars.count && !w->streaming; i++)
        if (scan_tag_wanted(w->scan, w->run.scalars.series[i].tag))
            left_out += w->run.scalars.series[i].seen - w->run.scalars.series[i].count;
    if (left_out)
        log_line(&w->scan->log, "run %s: %llu points left out by --view=%s", run->name, (unsigned long long)left_out,
                 view);
    if (w->run.scalars.rounded)
        log_line(&w->scan->log, "run %s: %llu whole numbers beyond 2^53 were rounded to the nearest double", run->name,
                 (unsigned long long)w->run.scalars.rounded);
    return OK;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static int write_sorted(struct work *w, struct error *e)
{
    scalar_run_sort(&w->run.scalars);
    for (size_t i = 0; i < w->run.scalars.count; i++) {
        struct scalar_series *s = &w->run.scalars.series[i];
        int rc = scalar_series_sort(s, e);

        for (size_t k = 0; k < s->count && rc == OK; k++)
            rc = emit(w, s, &s->points[k], scalar_series_from(s, k), e);
        if (rc != OK)
            return rc;
        log_progress(&w->scan->log, "%s: %llu points written", w->run.name, (unsigned long long)w->x.points);
    }
    return OK;
}

struct place {
    uint64_t mark;
    size_t series, point;
};

static int by_mark(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return (x->mark > y->mark) - (x->mark < y->mark);
}

/* The points that a view kept, in the order they were read. */
static int write_in_order(struct work *w, struct error *e)
{
    struct scalar_run *r = &w->run.scalars;
    struct place *places;
    size_t n = 0;
    int rc = OK;

    for (size_t i = 0; i < r->count; i++)
        n += r->series[i].count;
    if (!(places = malloc((n ? n : 1) * sizeof *places)))
        return error_set(e, ERR_NOMEM, "out of memory for %zu points", n);
    n = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->series[i].count; k++)
            places[n++] = (struct place){ r->series[i].marks[k], i, k };
    qsort(places, n, sizeof *places, by_mark);
    for (size_t i = 0; i < n && rc == OK; i++) {
        struct scalar_series *s = &r->series[places[i].series];

        rc = emit(w, s, &s->points[places[i].point], (unsigned)(places[i].mark & 0xff), e);
    }
    free(places);
    return rc;
}

static enum scalar_view view_of(const char *word)
{
    return !strcmp(word, "tensorboard") ? SCALAR_VIEW_TENSORBOARD
           : !strcmp(word, "session")   ? SCALAR_VIEW_SESSION
                                        : SCALAR_VIEW_ALL;
}

/* Formats that write point by point: one run after the other, so memory holds one run at most. */
static int export_points(struct work *w, const struct arguments *a, struct error *e)
{
    struct scan *s = w->scan;
    int in_order = !strcmp(a->order, "file"), rc = OK;

    w->streaming = in_order && view_of(a->view) == SCALAR_VIEW_ALL;
    w->format->begin(&w->x);
    for (size_t i = 0; i < s->directory.count && rc == OK; i++) {
        if (!scan_run_wanted(s, s->directory.runs[i].name))
            continue;
        w->run.name = s->directory.runs[i].name;
        scalar_run_init(&w->run.scalars, view_of(a->view), in_order && !w->streaming, !w->streaming);
        rc = read_run(w, &s->directory.runs[i], a->view, e);
        if (rc == OK && !w->streaming)
            rc = in_order ? write_in_order(w, e) : write_sorted(w, e);
        forget_made(w);
        scalar_run_release(&w->run.scalars);
    }
    if (rc == OK)
        w->format->end(&w->x);
    return rc;
}

/* Takes out what is not wanted, so that the format sees only its points. */
static int sift(struct work *w, struct error *e)
{
    struct scalar_run *r = &w->run.scalars;

    for (size_t i = 0; i < r->count; i++) {
        struct scalar_series *s = &r->series[i];
        size_t kept = 0;

        if (!scan_tag_wanted(w->scan, s->tag))
            s->count = 0;
        for (size_t k = 0; k < s->count; k++) {
            if (export_dropped(&w->x, s->points[k].value))
                continue;
            s->points[kept] = s->points[k];
            if (s->marks)
                s->marks[kept] = s->marks[k];
            kept++;
        }
        s->count = kept;
        if (scalar_series_sort(s, e) != OK)
            return ERR_NOMEM;
    }
    return OK;
}

static int export_runs(struct work *w, const struct arguments *a, struct error *e)
{
    struct scan *s = w->scan;
    struct export_run *runs = calloc(s->directory.count + 1, sizeof *runs);
    size_t count = 0, with_points = 0;
    int rc = runs ? OK : error_set(e, ERR_NOMEM, "out of memory for %zu runs", s->directory.count);

    for (size_t i = 0; i < s->directory.count && rc == OK; i++) {
        int points = 0;

        if (!scan_run_wanted(s, s->directory.runs[i].name))
            continue;
        w->run.name = s->directory.runs[i].name;
        scalar_run_init(&w->run.scalars, view_of(a->view), 0, 1);
        rc = read_run(w, &s->directory.runs[i], a->view, e);
        if (rc == OK)
            rc = sift(w, e);
        for (size_t k = 0; k < w->run.scalars.count; k++)
            points |= w->run.scalars.series[k].count > 0;
        with_points += (size_t)points;
        runs[count++] = w->run;
    }
    if (rc == OK && w->x.no_run && with_points > 1)
        rc = error_set(e, ERR_ARG, "--no-run: %zu runs are selected; choose one with --run", with_points);
    if (rc == OK)
        rc = w->format->runs(&w->x, runs, count, e);
    for (size_t i = 0; i < count; i++)
        scalar_run_release(&runs[i].scalars);
    free(runs);
    return rc;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static const char examples[] = "  eventlog export logs -o points.csv\n"
                               "  eventlog export logs --format=wide --tag='loss*' --run='*/eval' --columns=first\n"
                               "  eventlog export logs --format=jsonl --order=file | jq -c 'select(.step > 100)'\n";

/* Options that only some formats know are refused with the others, not ignored. */
static int check(const struct options *o, const struct arguments *a, struct error *e)
{
    static const struct { const char *option, *formats; } rows[] = {
        { "tsv", "csv wide" },   { "crlf", "csv wide" },      { "columns", "wide" },     { "no-run", "wide" },
        { "dup", "wide" },       { "wall-time", "wide" },     { "step", "json jsonl" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (options_given(o, rows[i].option)) {
            const char *at = strstr(rows[i].formats, a->format);
            size_t n = strlen(a->format);

            if (!at || (at[n] && at[n] != ' '))
                return error_set(e, ERR_ARG, "--%s is for --format=%.*s%s only", rows[i].option,
                                 (int)strcspn(rows[i].formats, " "), rows[i].formats,
                                 strchr(rows[i].formats, ' ') ? " and its like" : "");
        }
    if (!strcmp(a->nonfinite, "null") && a->format[0] != 'j')
        return error_set(e, ERR_ARG, "--nonfinite=null is for --format=json and jsonl only");
    if (!strcmp(a->order, "file") && !strcmp(a->format, "wide"))
        return error_set(e, ERR_ARG, "--order=file: --format=wide has one row a step, so it is always sorted");
    return OK;
}

static int write_log(struct scan *s, const struct arguments *a, struct error *e)
{
    struct work w = { .scan = s, .format = NULL };
    int rc, status;

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i]->name, a->format))
            w.format = formats[i];
    w.x.float32_short = !strcmp(a->float32, "short");
    w.x.tsv = a->tsv;
    w.x.crlf = a->crlf;
    w.x.first_columns = !strcmp(a->columns, "first");
    w.x.no_run = a->no_run;
    w.x.wall_time = a->wall_time;
    w.x.step_string = !strcmp(a->step, "string");
    w.x.duplicate = !strcmp(a->duplicate, "first")   ? EXPORT_FIRST
                    : !strcmp(a->duplicate, "mean")  ? EXPORT_MEAN
                    : !strcmp(a->duplicate, "error") ? EXPORT_ERROR
                                                     : EXPORT_LAST;
    w.x.nonfinite = !strcmp(a->nonfinite, "null")   ? EXPORT_NULL
                    : !strcmp(a->nonfinite, "drop") ? EXPORT_DROP
                                                    : EXPORT_STRING;
    if ((rc = output_open(&w.x.out, a->output, a->force, e)) != OK)
        return scan_fail(s, e);
    rc = w.format->runs ? export_runs(&w, a, e) : export_points(&w, a, e);
    log_progress_end(&s->log);
    status = rc == OK ? scan_status(s, w.x.points > 0) : EXIT_USAGE;
    if (rc == OK)
        rc = output_close(w.x.out, status != EXIT_USAGE || !a->output, e);
    else
        output_close(w.x.out, 0, NULL);
    if (rc != OK)
        return scan_fail(s, e);
    if (!w.x.points && s->directory.count)
        log_line(&s->log, "no points matched");
    return status;
}

int command_export(int argc, char **argv)
{
    struct scan s = { .failed = 0 };
    struct arguments a = { .format = "csv", .view = "all", .duplicate = "last", .order = "step", .float32 = "exact",
                           .columns = "name", .nonfinite = "string", .step = "number" };
    struct option table[] = {
        { OPTION_CHOICE, 0, "format", &a.format, NULL, "one row a point, one row a step, or one object a point "
          "(default csv)", "csv|wide|json|jsonl", 0, 0, 0 },
        { OPTION_TEXT, 'o', "output", &a.output, "FILE", "to FILE, put there whole by rename; .gz compresses "
          "(default: standard output)", NULL, 0, 0, 0 },
        { OPTION_FLAG, 'f', "force", &a.force, NULL, "write over an existing FILE", NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "run", &s.runs, "GLOB", "only runs whose name matches; may be repeated", NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "tag", &s.tags, "GLOB", "only tags that match; may be repeated", NULL, 0, 0, 0 },
        { OPTION_CHOICE, 0, "view", &a.view, NULL, "every point; what TensorBoard would show; or what restarts meant "
          "(default all)", "all|tensorboard|session", 0, 0, 0 },
        { OPTION_CHOICE, 0, "order", &a.order, NULL, "by run, tag and step, or as it stands in the files, which keeps "
          "memory flat (default step)", "step|file", 0, 0, 0 },
        { OPTION_CHOICE, 0, "dup", &a.duplicate, NULL, "wide: which of several points of a step (default last)",
          "last|first|mean|error", 0, 0, 0 },
        { OPTION_CHOICE, 0, "float32", &a.float32, NULL, "short: values that were float32 with the digits that "
          "float32 needs (default exact)", "exact|short", 0, 0, 0 },
        { OPTION_CHOICE, 0, "nonfinite", &a.nonfinite, NULL, "NaN and infinities: text, null (json), or left out "
          "(default string)", "string|null|drop", 0, 0, 0 },
        { OPTION_CHOICE, 0, "step", &a.step, NULL, "json: steps as text, for readers that round beyond 2^53 "
          "(default number)", "number|string", 0, 0, 0 },
        { OPTION_FLAG, 0, "tsv", &a.tsv, NULL, "csv, wide: tabs between, backslash escapes, no quotes", NULL, 0, 0, 0 },
        { OPTION_FLAG, 0, "crlf", &a.crlf, NULL, "csv, wide: lines end in CR LF", NULL, 0, 0, 0 },
        { OPTION_CHOICE, 0, "columns", &a.columns, NULL, "wide: tags by name or by first appearance (default name)",
          "name|first", 0, 0, 0 },
        { OPTION_FLAG, 0, "no-run", &a.no_run, NULL, "wide: without the column `run`; for one run", NULL, 0, 0, 0 },
        { OPTION_FLAG, 0, "wall-time", &a.wall_time, NULL, "wide: a column with the latest wall time of the row",
          NULL, 0, 0, 0 },
    };
    const struct options options = {
        .program = "eventlog export", .usage = "[OPTION...] PATH...",
        .summary = "Writes the scalar points of event files as text, every number exact. Status 1: nothing matched, or "
                   "a file was damaged (the place is told, the sound part is written); 2: usage or I/O.",
        .examples = examples, .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which log directory?",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc != OK || check(&options, &a, &e) != OK)
        return scan_fail(&s, &e);
    if (a.output && !strcmp(a.output, "-"))
        a.output = NULL;
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_log(&s, &a, &e);
    scan_close(&s);
    return status;
}
