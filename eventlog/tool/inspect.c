/* eventlog inspect: what is in a log. */
#include "eventlog/tool/inspect.h"

#include "base/json.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/inspect_tree.h"
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
    scalar_run_begin_file(&w->run.shown);
    if (!files) {
        error_set(&w->memory, ERR_NOMEM, "out of memory for the files of run %s", w->run.name);
        return;
    }
    w->run.files = files;
    files[w->run.file_count++] = (struct inspect_file){ .path = path };
}

static void damage(void *context, const struct event_damage *d)
{
    struct work *w = context;
    struct inspect_file *f = w->run.file_count ? &w->run.files[w->run.file_count - 1] : NULL;
    struct event_damage *list;

    scalar_run_damage(&w->run.shown);
    if (!f)
        return;
    if (!(f->damage_count & (f->damage_count - 1))) {
        size_t capacity = f->damage_count ? f->damage_count * 2 : 1;

        if (!(list = realloc(f->damage, capacity * sizeof *list))) {
            error_set(&w->memory, ERR_NOMEM, "%s: out of memory for its damage", f->path);
            return;
        }
        f->damage = list;
    }
    f->damage[f->damage_count++] = *d;
}

static void end_file(void *context, const struct event_reader_state *state)
{
    struct work *w = context;

    if (w->run.file_count)
        w->run.files[w->run.file_count - 1].state = *state;
}

static void add_step(struct work *w, enum inspect_kind kind, int64_t step)
{
    struct inspect_steps *s = &w->run.kinds[kind];

    if (s->count == s->capacity) {
        int64_t *items = grown(w, s->items, &s->capacity, sizeof *items);

        if (!items)
            return;
        s->items = items;
    }
    s->items[s->count++] = step;
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

/* The tag of a value has just been met by scalar_run_event(), so its series is there; values of one event are few. */
static void add_kinds(struct work *w, const struct event *event)
{
    static const enum inspect_kind kinds[] = {
        [EVENT_VALUE_SIMPLE] = INSPECT_SCALARS,       [EVENT_VALUE_IMAGE] = INSPECT_IMAGES,
        [EVENT_VALUE_HISTOGRAM] = INSPECT_HISTOGRAMS, [EVENT_VALUE_AUDIO] = INSPECT_AUDIO,
        [EVENT_VALUE_TENSOR] = INSPECT_TENSOR,
    };
    struct event_values values;
    struct event_value value;

    if (event->what == EVENT_GRAPH)
        add_step(w, INSPECT_GRAPH, event->step);
    if (event->session == EVENT_SESSION_START)
        add_step(w, INSPECT_START, event->step);
    if (event->session == EVENT_SESSION_STOP)
        add_step(w, INSPECT_STOP, event->step);
    if (event->session == EVENT_SESSION_CHECKPOINT)
        add_step(w, INSPECT_CHECKPOINT, event->step);
    event_values_init(&values, event);
    while (event_values_next(&values, &value)) {
        if (value.kind == EVENT_VALUE_NONE || value.kind == EVENT_VALUE_OLD_HISTOGRAM)
            continue;
        add_step(w, kinds[value.kind], event->step);
        for (size_t i = 0; i < w->run.all.count; i++)
            if (w->run.all.series[i].tag_length == value.tag_length &&
                !memcmp(w->run.all.series[i].tag, value.tag, value.tag_length)) {
                add_tag_kind(w, i, kinds[value.kind]);
                break;
            }
    }
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct work *w = context;
    int rc = scalar_run_event(&w->run.all, ev, e);

    if (rc == OK)
        rc = scalar_run_event(&w->run.shown, ev, e);
    if (rc == OK && w->by_kind)
        add_kinds(w, ev);
    if (w->memory.code) {
        *e = w->memory;
        return ERR_NOMEM;
    }
    return rc;
}

static void release_run(struct inspect_run *run)
{
    scalar_run_release(&run->all);
    scalar_run_release(&run->shown);
    for (size_t i = 0; i < run->file_count; i++)
        free(run->files[i].damage);
    for (size_t i = 0; i < INSPECT_KINDS; i++)
        free(run->kinds[i].items);
    free(run->files);
    free(run->tag_kinds);
}

static void begin_run(struct inspect_run *run, const char *name, const char *directory)
{
    memset(run, 0, sizeof *run);
    run->name = name;
    run->directory = directory;
    scalar_run_init(&run->all, SCALAR_VIEW_ALL, 0, 1);
    scalar_run_init(&run->shown, SCALAR_VIEW_TENSORBOARD, 0, 1);
}

static void restart(void *context)
{
    struct work *w = context;
    const char *name = w->run.name, *directory = w->run.directory;

    release_run(&w->run);
    begin_run(&w->run, name, directory);
}

/* ---- figures --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int inspect_statistics(const int64_t *steps, size_t count, size_t stride, struct inspect_statistics *s,
                       struct error *e)
{
    const char *at = (const char *)steps;
    int64_t before = *steps, *sorted = NULL;

    memset(s, 0, sizeof *s);
    s->first = s->last = s->least = s->most = before;
    s->distinct = 1;
    for (size_t i = 1; i < count; i++) {
        int64_t step = *(const int64_t *)(const void *)(at + i * stride);

        s->out_of_order += step < before;
        s->distinct += step != before;
        s->least = step < s->least ? step : s->least;
        s->most = step > s->most ? step : s->most;
        s->last = before = step;
    }
    if (!s->out_of_order)
        return OK;
    if (!(sorted = malloc(count * sizeof *sorted)))
        return error_set(e, ERR_NOMEM, "out of memory for the steps of a series");
    for (size_t i = 0; i < count; i++)
        sorted[i] = *(const int64_t *)(const void *)(at + i * stride);
    qsort(sorted, count, sizeof *sorted, by_value);
    s->distinct = 1;
    for (size_t i = 1; i < count; i++)
        s->distinct += sorted[i] != sorted[i - 1];
    free(sorted);
    return OK;
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

/* Series that are not asked for go, in both views alike. */
static void sift(const struct scan *s, struct inspect_run *run)
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
        scalar_run_finish(&w.run.shown);
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
    struct scan s = { .failed = 0 };
    const char *format = "text", *path = NULL;
    int json = 0, tree = 0, force = 0;
    struct option table[] = {
        { OPTION_CHOICE, 0, "format", &format, NULL, "text for people, json, or the layout of `tensorboard --inspect`; "
          "tree: a line a directory (default text)", "text|json|tb|tree", 0, 0, 0 },
        { OPTION_FLAG, 0, "json", &json, NULL, "the same as --format=json", NULL, 0, 0, 0 },
        { OPTION_FLAG, 0, "tree", &tree, NULL, "the same as --format=tree", NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "run", &s.runs, "GLOB", "only runs whose name matches; may be repeated", NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "tag", &s.tags, "GLOB", "only tags that match; may be repeated", NULL, 0, 0, 0 },
        { OPTION_TEXT, 'o', "output", &path, "FILE", "to FILE, put there whole by rename (default: standard output)",
          NULL, 0, 0, 0 },
        { OPTION_FLAG, 'f', "force", &force, NULL, "write over an existing FILE", NULL, 0, 0, 0 },
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
    if (rc != OK)
        return scan_fail(&s, &e);
    if (json && tree)
        return scan_fail(&s, (error_set(&e, ERR_ARG, "--json and --tree: one of them"), &e));
    format = json ? "json" : tree ? "tree" : format;
    s.quiet_damage = strcmp(format, "tb") != 0 && strcmp(format, "tree") != 0; /* the others print it themselves */
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    if ((rc = output_open(&out, path, force, &e)) == OK) {
        rc = print_runs(&s, format, out, &matched, &e);
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
