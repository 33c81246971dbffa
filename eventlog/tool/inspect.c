/* eventlog inspect: what is in a log. */
#include "eventlog/tool/inspect.h"

#include "base/json.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/inspect_tree.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/scan.h"

#include <stdlib.h>
#include <string.h>

struct work {
    struct scan *scan;
    struct inspect_run run;
    struct error memory; /* code set once something could not be kept */
    int by_kind;         /* gather steps by kind, for TensorBoard's layout */
};

/* ---- gathering ------------------------------------------------------------------------------------------------- */

static void *grown(struct work *w, void *list, size_t *capacity, size_t size)
{
    size_t more = *capacity ? *capacity * 2 : 16;
    void *bigger = realloc(list, more * size);

    if (!bigger) {
        error_set(&w->memory, ERR_NOMEM, "out of memory for what is in run %s", w->run.name);
        return NULL;
    }
    *capacity = more;
    return bigger;
}

static void begin_file(void *context, const char *path)
{
    struct work *w = context;
    struct inspect_file *files = realloc(w->run.files, (w->run.file_count + 1) * sizeof *files);

    scalar_run_begin_file(&w->run.all);
    if (!files) {
        error_set(&w->memory, ERR_NOMEM, "out of memory for the files of run %s", w->run.name);
        return;
    }
    w->run.files = files;
    files[w->run.file_count++] = (struct inspect_file){ .path = path };
}

static void end_file(void *context, const struct event_reader_state *state)
{
    struct work *w = context;

    if (w->run.file_count)
        w->run.files[w->run.file_count - 1].state = *state;
}

static void add_step(struct work *w, enum inspect_kind kind, int64_t step)
{
    if (!step_list_add(&w->run.kinds[kind], step, 0))
        error_set(&w->memory, ERR_NOMEM, "out of memory for the steps of run %s", w->run.name);
}

static void add_tag_kind(struct work *w, size_t series, enum inspect_kind kind)
{
    while (series >= w->run.tag_kind_count) {
        size_t count = w->run.tag_kind_count;
        unsigned *kinds = grown(w, w->run.tag_kinds, &w->run.tag_kind_count, sizeof *kinds);

        if (!kinds)
            return;
        w->run.tag_kinds = kinds;
        memset(kinds + count, 0, (w->run.tag_kind_count - count) * sizeof *kinds);
    }
    w->run.tag_kinds[series] |= 1u << kind;
}

static struct inspect_series *series_of(struct work *w, const struct scalar_series *s)
{
    while (s->number >= w->run.series_count) {
        size_t count = w->run.series_count;
        struct inspect_series *list = grown(w, w->run.series, &w->run.series_count, sizeof *list);

        if (!list)
            return NULL;
        w->run.series = list;
        memset(list + count, 0, (w->run.series_count - count) * sizeof *list);
    }
    return &w->run.series[s->number];
}

/* A value that is a point, or that TensorBoard's default loader takes for one. */
static void add_value(struct work *w, const struct scalar_series *s, int64_t step, int is_point, unsigned from)
{
    struct inspect_series *to = series_of(w, s);
    int good = !is_point || !to || step_list_add(&to->steps, step, 0);

    if (to && from & SCALAR_TAKEN) {
        step_list_cut(&to->kept, step);
        good &= step_list_add(&to->kept, step, (from & SCALAR_SHOWN) != 0);
    }
    if (!good)
        error_set(&w->memory, ERR_NOMEM, "out of memory for the steps of run %s", w->run.name);
}

static void add_kind(struct work *w, const struct scalar_series *s, const struct event_value *value, int64_t step)
{
    static const enum inspect_kind kinds[] = {
        [EVENT_VALUE_SIMPLE] = INSPECT_SCALARS,       [EVENT_VALUE_IMAGE] = INSPECT_IMAGES,
        [EVENT_VALUE_HISTOGRAM] = INSPECT_HISTOGRAMS, [EVENT_VALUE_AUDIO] = INSPECT_AUDIO,
        [EVENT_VALUE_TENSOR] = INSPECT_TENSOR,
    };

    if (value->kind == EVENT_VALUE_NONE || value->kind == EVENT_VALUE_OLD_HISTOGRAM)
        return;
    add_step(w, kinds[value->kind], step);
    add_tag_kind(w, s->number, kinds[value->kind]);
}

static void add_event_kind(struct work *w, const struct event *event)
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
    struct work *w = context;
    int by_kind = w->by_kind && !ev->is_damaged;
    struct event_values values;
    struct event_value value;

    if (by_kind)
        add_event_kind(w, ev);
    scalar_run_begin_event(&w->run.all, ev);
    event_values_init(&values, ev);
    while (!w->memory.code && event_values_next(&values, &value)) {
        struct scalar_series *s;
        struct scalar_point point;
        unsigned from;
        int rc = scalar_run_value(&w->run.all, ev, &value, &point, &s, &from, e);

        if (rc < 0)
            return rc;
        if (rc == 1 || from & SCALAR_TAKEN)
            add_value(w, s, ev->step, rc == 1, from);
        if (by_kind)
            add_kind(w, s, &value, ev->step);
    }
    if (w->memory.code)
        *e = w->memory;
    return w->memory.code;
}

static int damage(void *context, const struct event_damage *d, struct error *e)
{
    struct work *w = context;
    struct inspect_file *f = w->run.file_count ? &w->run.files[w->run.file_count - 1] : NULL;
    struct event_damage *list;
    struct event ev;

    if (f && !(f->damage_count & (f->damage_count - 1))) {
        size_t capacity = f->damage_count ? f->damage_count * 2 : 1;

        if (!(list = realloc(f->damage, capacity * sizeof *list)))
            return error_set(e, ERR_NOMEM, "%s: out of memory for its damage", f->path);
        f->damage = list;
    }
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
    free(run->tag_kinds);
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
    struct work *w = context;
    const char *name = w->run.name, *directory = w->run.directory;

    release_run(&w->run);
    begin_run(&w->run, name, directory);
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

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
    for (size_t i = 0; i < s->directory.count; i++)
        if (scan_run_wanted(s, s->directory.runs[i].name)) {
            output_text(out, s->directory.runs[i].directory);
            output_text(out, "\n");
        }
    output_text(out, "\n");
}

/* Series that are not asked for go. */
static void sift(struct scan *s, struct inspect_run *run)
{
    for (size_t i = 0; i < run->all.count; i++)
        if (!scan_tag_wanted(s, run->all.series[i].tag)) {
            run->all.series[i].seen = run->all.series[i].skipped = 0;
            if (i < run->tag_kind_count)
                run->tag_kinds[i] = 0;
        }
}

static int print_runs(struct scan *s, const char *format, struct output *out, size_t *matched, struct error *e)
{
    struct work w = { .scan = s, .by_kind = !strcmp(format, "tb") };
    const struct scan_sink sink = { &w, begin_file, event, damage, end_file, restart };
    struct inspect_tree tree = INSPECT_TREE_EMPTY;
    int rc = OK;

    begin_document(out, format, s);
    for (size_t i = 0; i < s->directory.count && rc == OK; i++) {
        const struct log_run *run = &s->directory.runs[i];

        if (!scan_run_wanted(s, run->name))
            continue;
        begin_run(&w.run, run->name, run->directory);
        rc = scan_run(s, run, &sink, e);
        sift(s, &w.run);
        if (rc == OK)
            rc = !strcmp(format, "json") ? inspect_print_json(out, &w.run, !*matched, e)
                 : !strcmp(format, "tree") ? inspect_tree_add(&tree, &w.run, e)
                 : !strcmp(format, "tb") ? inspect_print_tensorboard(out, &w.run, e)
                                         : inspect_print_text(out, &w.run, e);
        release_run(&w.run);
        ++*matched;
    }
    if (!strcmp(format, "json"))
        output_text(out, "]}\n");
    if (rc == OK)
        rc = inspect_tree_print(out, &tree, e);
    inspect_tree_release(&tree);
    return rc;
}

int command_inspect(int argc, char **argv)
{
    static const struct output_format formats[] = { { "text", "txt", 0 }, { "json", "json", 0 }, { "tb", "txt", 0 },
                                                    { "tree", "txt", 0 } };
    struct output_options to = { .format = NULL };
    struct scan s = { .failed = 0 };
    int tree = 0;
    struct option table[] = {
        SCAN_RUN_OPTION(s), SCAN_TAG_OPTION(s),
        OUTPUT_OPTIONS(to, "text|json|tb|tree", "text", "Print text for people, JSON, what `tensorboard --inspect` "
                       "prints, or a line for each directory"),
        { OPTION_FLAG, 0, "tree", &tree, .help = "Same as --format=tree" },
    };
    const struct options options = {
        .program = "eventlog inspect", .usage = "[OPTION...] PATH...",
        .summary = "Shows what a log holds: per run its files and how they end, per series its points and steps. Steps "
                   "are counted per series (--format=tb counts all tags of a run together, as TensorBoard does). "
                   "Status 1: no event files, or damage; 2: usage or I/O.",
        .examples = "  eventlog inspect logs\n  eventlog inspect logs --json | jq '.runs[].series[] | {tag, points}'\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which log directory?",
    };
    struct error e = { 0 };
    struct output *out;
    size_t matched = 0;
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK)
        rc = output_format_flag(&to, tree, "tree", &e);
    if (rc == OK)
        rc = output_format_settle(&to, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc != OK)
        return scan_fail(&s, &e);
    s.quiet_damage = strcmp(to.format, "tb") != 0 && strcmp(to.format, "tree") != 0; /* the others print it */
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    if ((rc = output_open(&out, to.path, to.force, &e)) == OK) {
        rc = print_runs(&s, to.format, out, &matched, &e);
        status = scan_status(&s, matched > 0);
        if (rc == OK)
            rc = output_close(out, 1, &e);
        else
            output_close(out, 0, NULL);
    }
    if (rc != OK)
        status = scan_fail(&s, &e);
    scan_close(&s);
    return status;
}
