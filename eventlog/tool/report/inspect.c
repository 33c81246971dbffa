/* eventlog inspect: shows what is in a log. */
#include "eventlog/tool/report/inspect.h"

#include "base/array.h"
#include "base/json.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/report/inspect_tree.h"
#include "eventlog/tool/scan.h"
#include "eventlog/tool/scan_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inspect_work {
    struct inspect_run run;
    struct error memory; /* its code is set once memory has run out */
    int by_kind;         /* collect steps by kind, for TensorBoard's layout */
};

/* ---- gathering ------------------------------------------------------------------------------------------------- */

static void begin_file(void *context, const char *path)
{
    struct inspect_work *w = context;
    struct inspect_file *files = realloc(w->run.files, (w->run.file_count + 1) * sizeof *files);

    scalar_run_begin_file(&w->run.all);
    if (!files) {
        error_memory(&w->memory, NULL, "for the files of run %s", w->run.name);
        return;
    }
    w->run.files = files;
    files[w->run.file_count++] = (struct inspect_file){ .path = path };
}

static void end_file(void *context, const struct event_reader_state *state)
{
    struct inspect_work *w = context;

    if (w->run.file_count)
        w->run.files[w->run.file_count - 1].state = *state;
}

static void add_step(struct inspect_work *w, enum inspect_kind kind, int64_t step)
{
    if (!step_list_add(&w->run.kinds[kind], step, 0))
        error_memory(&w->memory, NULL, "for the steps of run %s", w->run.name);
}

static struct inspect_series *series_of(struct inspect_work *w, const struct scalar_series *s)
{
    if (ARRAY_ROOM_ZERO(w->run.series, w->run.series_count, s->number + 1))
        return &w->run.series[s->number];
    error_memory(&w->memory, NULL, "for what is in run %s", w->run.name);
    return NULL;
}

/* A value that is a point, or that TensorBoard's default loader takes for one. */
static void inspect_add_value(struct inspect_work *w, const struct scalar_series *s, int64_t step, int is_point,
                              unsigned from)
{
    struct inspect_series *to = series_of(w, s);
    int good = !is_point || !to || step_list_add(&to->steps, step, 0);

    if (to && from & SCALAR_TAKEN) {
        step_list_cut(&to->kept, step);
        good &= step_list_add(&to->kept, step, (from & SCALAR_SHOWN) != 0);
    }
    if (!good)
        error_memory(&w->memory, NULL, "for the steps of run %s", w->run.name);
}

static void add_kind(struct inspect_work *w, const struct scalar_series *s, const struct event_value *value,
                     int64_t step)
{
    static const enum inspect_kind kinds[] = {
        [EVENT_VALUE_SIMPLE] = INSPECT_SCALARS,       [EVENT_VALUE_IMAGE] = INSPECT_IMAGES,
        [EVENT_VALUE_HISTOGRAM] = INSPECT_HISTOGRAMS, [EVENT_VALUE_AUDIO] = INSPECT_AUDIO,
        [EVENT_VALUE_TENSOR] = INSPECT_TENSOR,
    };
    struct inspect_series *series;

    if (value->kind == EVENT_VALUE_NONE || value->kind == EVENT_VALUE_OLD_HISTOGRAM)
        return;
    add_step(w, kinds[value->kind], step);
    if ((series = series_of(w, s)))
        series->kinds |= 1u << kinds[value->kind];
}

static void add_event_kind(struct inspect_work *w, const struct event *event)
{
    if (event->what == EVENT_GRAPH)
        add_step(w, INSPECT_GRAPH, event->step);
    if (event->session == EVENT_SESSION_START)
        add_step(w, INSPECT_START, event->step);
    if (event->session == EVENT_SESSION_STOP)
        add_step(w, INSPECT_STOP, event->step);
    if (event->session == EVENT_SESSION_CHECKPOINT)
        add_step(w, INSPECT_CHECKPOINT, event->step);
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct inspect_work *w = context;
    int by_kind = w->by_kind && !ev->is_damaged;
    struct event_values values;
    const struct event_value *value;

    if (by_kind)
        add_event_kind(w, ev);
    scalar_run_begin_event(&w->run.all, ev);
    event_values_init(&values, ev);
    while (!w->memory.code && (value = event_values_next(&values))) {
        struct scalar_series *s;
        struct scalar_point point;
        unsigned from;
        int rc = scalar_run_value(&w->run.all, ev, value, &point, &s, &from, e);

        if (rc < 0)
            return rc;
        if (rc == 1 || from & SCALAR_TAKEN)
            inspect_add_value(w, s, ev->step, rc == 1, from);
        if (by_kind)
            add_kind(w, s, value, ev->step);
    }
    if (w->memory.code)
        *e = w->memory;
    return w->memory.code;
}

static int damage(void *context, const struct event_damage *d, struct error *e)
{
    struct inspect_work *w = context;
    struct inspect_file *f = w->run.file_count ? &w->run.files[w->run.file_count - 1] : NULL;
    struct event ev;

    if (f && !ARRAY_ROOM(f->damage, f->damage_capacity, f->damage_count + 1))
        return error_memory(e, f->path, "for its damage");
    if (f) {
        f->damage[f->damage_count] = *d;
        f->damage[f->damage_count++].data = NULL; /* borrowed */
    }
    return scalar_run_damage(&w->run.all, d, &ev) ? event(context, &ev, e) : OK;
}

static void release_run(struct inspect_run *run)
{
    scalar_run_release(&run->all);
    for (size_t i = 0; i < run->file_count; i++)
        free(run->files[i].damage);
    for (size_t i = 0; i < INSPECT_KINDS; i++)
        step_list_release(&run->kinds[i]);
    for (size_t i = 0; i < run->series_count; i++) {
        step_list_release(&run->series[i].steps);
        step_list_release(&run->series[i].kept);
    }
    free(run->series);
    free(run->files);
}

static void begin_run(struct inspect_run *run, const char *name, const char *directory)
{
    memset(run, 0, sizeof *run);
    run->name = name;
    run->directory = directory;
    scalar_run_init(&run->all, SCALAR_VIEW_ALL, 0, 0);
    run->all.follow_loader = 1;
}

static void restart(void *context)
{
    struct inspect_work *w = context;
    const char *name = w->run.name, *directory = w->run.directory;

    release_run(&w->run);
    begin_run(&w->run, name, directory);
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

/* The formats that are not reports. */
static int has_own_layout(const char *format)
{
    return !strcmp(format, "json") || !strcmp(format, "tb") || !strcmp(format, "tree");
}

static void begin_document(struct output *out, const char *format, struct scan *s)
{
    if (!strcmp(format, "json"))
        output_text(out, "{\"type\":\"inspect\",\"version\":1,\"runs\":[");
    if (strcmp(format, "tb") != 0)
        return;
    for (int rule = 0; rule < 2; rule++) {
        for (int i = 0; i < 70; i++)
            output_text(out, "=");
        output_text(out, rule ? "\n\n" : "\nProcessing event files... (this can take a few minutes)\n");
    }
    output_text(out, "Found event files in:\n");
    for (const struct log_run *run = NULL; (run = scan_next_run(s, run));) {
        output_text(out, run->directory);
        output_text(out, "\n");
    }
    output_text(out, "\n");
}

/* Removes series that were not asked for. */
static void sift(struct scan *s, struct inspect_run *run)
{
    for (size_t i = 0; i < run->all.count; i++)
        if (!scan_tag_wanted(s, run->all.series[i].tag)) {
            run->all.series[i].seen = run->all.series[i].skipped = 0;
            if (i < run->series_count)
                run->series[i].kinds = 0;
        }
}

static void add_totals(struct inspect_totals *t, const struct inspect_run *run)
{
    t->files += run->file_count;
    for (size_t i = 0; i < run->file_count; i++) {
        t->records += run->files[i].state.records;
        t->bytes += run->files[i].state.size;
        t->damage += run->files[i].damage_count;
    }
    for (size_t i = 0; i < run->all.count; i++) {
        t->series += run->all.series[i].seen || run->all.series[i].skipped;
        t->points += run->all.series[i].seen;
    }
}

/* Where the runs are written: to a report, or to `out` in another layout. */
struct printing {
    struct scan *scan;
    const char *format;
    struct report *report; /* NULL: not the layout of one */
    struct output *out;
    struct inspect_tree tree;
    struct inspect_totals total;
    int ranked;
    size_t matched;
};

static int print_run(struct printing *p, const struct inspect_run *run, struct error *e)
{
    add_totals(&p->total, run);
    return p->report                    ? inspect_report(p->report, run, p->ranked, e)
           : !strcmp(p->format, "json") ? inspect_print_json(p->out, run, !p->matched, e)
           : !strcmp(p->format, "tree") ? inspect_tree_add(&p->tree, run, e)
                                        : inspect_print_tensorboard(p->out, run, e);
}

static int read_run(void *context, struct scan *s, const struct log_run *run, void *one, struct error *e)
{
    const struct printing *p = context;
    struct inspect_work *w = one;
    const struct scan_sink sink = { w, begin_file, event, damage, end_file, restart, NULL, NULL };

    w->by_kind = !strcmp(p->format, "tb");
    begin_run(&w->run, run->name, run->directory);
    return scan_run(s, run, &sink, e);
}

static int take_run(void *context, const struct log_run *run, void *one, struct error *e)
{
    struct printing *p = context;
    struct inspect_work *w = one;
    int rc;

    (void)run;
    sift(p->scan, &w->run);
    rc = print_run(p, &w->run, e);
    p->matched++;
    return rc;
}

static void release_work(void *context, void *one)
{
    (void)context;
    release_run(&((struct inspect_work *)one)->run);
}

static int print_runs(struct scan *s, struct printing *p, struct error *e)
{
    const struct scan_runs calls = {
        .size = sizeof(struct inspect_work),
        .read = read_run,
        .take = take_run,
        .release = release_work,
        .context = p,
    };

    p->scan = s;
    return scan_runs(s, &calls, e);
}

static void end_json(struct output *out, const struct inspect_totals *t)
{
    char text[200];

    snprintf(text, sizeof text,
             "],\"total\":{\"files\":%llu,\"records\":%llu,\"bytes\":%llu,\"series\":%llu,"
             "\"points\":%llu,\"damage\":%llu}}\n",
             (unsigned long long)t->files, (unsigned long long)t->records, (unsigned long long)t->bytes,
             (unsigned long long)t->series, (unsigned long long)t->points, (unsigned long long)t->damage);
    output_text(out, text);
}

/* JSON, TensorBoard's layout, the tree. */
static int inspect_layouts(struct scan *s, struct printing *p, const struct output_options *to, struct error *e)
{
    int status, rc = output_open(&p->out, to->path, to->force, e);

    if (rc != OK)
        return scan_fail(s, e);
    begin_document(p->out, p->format, s);
    rc = print_runs(s, p, e);
    if (!strcmp(p->format, "json"))
        end_json(p->out, &p->total);
    if (rc == OK)
        rc = inspect_tree_print(p->out, &p->tree, e);
    status = gather_finish(s, p->out, rc, p->matched > 0, e);
    inspect_tree_release(&p->tree);
    return status;
}

static int inspect(struct scan *s, const struct report_options *o, struct error *e)
{
    struct printing p = { .format = o->to.format, .tree = INSPECT_TREE_EMPTY, .ranked = o->sort || o->top };
    const struct report_layout layout = inspect_layout(p.ranked);
    int rc;

    if (has_own_layout(p.format))
        return inspect_layouts(s, &p, &o->to, e);
    if ((rc = report_open(&p.report, &layout, o, e)) != OK)
        return scan_fail(s, e);
    if (report_for_people(p.report))
        scan_natural_order(&s->directory);
    rc = print_runs(s, &p, e);
    return report_finish(p.report, s, rc, p.matched > 0, e);
}

int command_inspect(int argc, char **argv)
{
    static const struct output_format formats[] = { REPORT_FORMATS, { "tb", "txt", 0 }, { "tree", "txt", 0 } };
    struct report_options o = { .sort = NULL };
    struct scan s = { .failed = 0 };
    int tree = 0;
    struct option table[] = {
        SCAN_RUN_OPTION(s),
        SCAN_TAG_OPTION(s),
        REPORT_OPTIONS(o),
        OUTPUT_OPTIONS(o.to, REPORT_WORDS "|tb|tree", "text",
                       "Print text; json: runs, files and series; csv, jsonl, md, html: a row or an object for each "
                       "series; tb: what 'tensorboard --inspect' prints; tree: a line for each directory"),
        { OPTION_FLAG, 0, "tree", &tree, .help = "Same as --format=tree" },
    };
    const struct options options = {
        .program = "eventlog inspect",
        .usage = "[OPTION...] PATH...",
        .summary = "Show what a log holds: the files of each run and how they end, and the points and steps of each "
                   "series. --format=tb counts the steps of all tags of a run together, as TensorBoard does. Exit "
                   "status: 0 done; 1 no event files, nothing matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog inspect logs\n"
                    "  eventlog inspect logs --sort points:desc --top 10    the longest series\n"
                    "  eventlog inspect logs --json | jq '.runs[].series[] | {tag, points}'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = output_format_flag(&o.to, tree, "tree", &e);
    if (rc == OK)
        rc = report_settle(&o, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc == OK && (o.sort || o.top) && has_own_layout(o.to.format))
        rc = error_set(&e, ERR_ARG, "--%s does not apply to --format=%s; use jsonl, csv or text",
                       o.sort ? "sort" : "top", o.to.format);
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    s.quiet_damage = !strcmp(o.to.format, "text") || !strcmp(o.to.format, "json"); /* they show it */
    s.quiet_damage &= !(o.sort || o.top);
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = inspect(&s, &o, &e);
    scan_close(&s);
    return status;
}
