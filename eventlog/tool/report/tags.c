/* eventlog tags: lists the series of a log with their plugin and metadata. */
#include "base/json.h"
#include "eventlog/format/summary_metadata.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/report/report.h"

#include <string.h>

struct tags_work {
    struct report *report; /* NULL: TensorBoard's layout, into text */
    struct buffer text;
    struct selection plugins;
    uint64_t series;
    int any_run;
};

static const struct report_column columns[] = {
    { .key = "run", .cut = 10 },
    { .key = "tag", .cut = 12 },
    { .key = "plugin" },
    { .key = "display_name", .title = "name", .cut = 8, .leave_out = 2, .if_any = 1 },
    { .key = "description", .cut = 12, .leave_out = 1, .if_any = 1 },
};

static const struct report_layout layout = {
    .type = "tags",
    .rows = "series",
    .columns = columns,
    .count = sizeof columns / sizeof *columns,
};

/* The answer of TensorBoard's scalars plugin to a request for its tags. */
static void write_tensorboard(struct tags_work *w, const char *run, const struct scalar_series *s,
                              const struct summary_metadata *m, int first)
{
    if (first) {
        buffer_append_text(&w->text, w->any_run ? "}, " : "");
        json_span(&w->text, run, strlen(run), 1);
        buffer_append_text(&w->text, ": {");
    }
    buffer_append_text(&w->text, first ? "" : ", ");
    json_span(&w->text, s->tag, s->tag_length, 1);
    buffer_append_text(&w->text, ": {\"displayName\": ");
    json_span(&w->text, (const char *)m->display_name.bytes, m->display_name.length, 1);
    buffer_append_text(&w->text, ", \"description\": ");
    json_span(&w->text, (const char *)m->description.bytes, m->description.length, 1);
    buffer_append_byte(&w->text, '}');
    w->any_run = 1;
}

static void write_row(struct tags_work *w, const char *run, const struct scalar_series *s,
                      const struct summary_metadata *m)
{
    report_word(w->report, run);
    report_text(w->report, s->tag, s->tag_length);
    report_word(w->report, s->plugin);
    report_text(w->report, (const char *)m->display_name.bytes, m->display_name.length);
    report_text(w->report, (const char *)m->description.bytes, m->description.length);
}

static int one_run(void *context, const char *name, struct scalar_run *scalars, struct error *e)
{
    struct tags_work *w = context;
    int first = 1;

    for (size_t i = 0; i < scalars->count; i++) {
        const struct scalar_series *s = &scalars->series[i];
        struct summary_metadata m;

        if ((!s->seen && !s->skipped) || !selection_wants(&w->plugins, s->plugin))
            continue;
        summary_metadata_read(&m, (const uint8_t *)(s->metadata ? s->metadata : ""), s->metadata_length);
        if (w->report)
            write_row(w, name, s, &m);
        else
            write_tensorboard(w, name, s, &m, first);
        first = 0;
        w->series++;
    }
    return buffer_ok(&w->text) ? OK : error_memory(e, NULL, "for the tags of run %s", name);
}

static int write_tags(struct scan *s, struct tags_work *w, const struct report_options *o, struct error *e)
{
    const struct gather g = { .range = POINT_RANGE_ALL, .run = one_run, .context = w, .no_points = 1 };
    int tensorboard = !strcmp(o->to.format, "tb-json"), status, rc;
    struct output *out = NULL;

    rc = tensorboard ? output_open(&out, o->to.path, o->to.force, e) : report_open(&w->report, &layout, o, e);
    if (rc != OK)
        return scan_fail(s, e);
    rc = gather_runs(s, &g, e);
    s->unmatched += selection_tell(&w->plugins, "--plugin", "plugin", &s->log);
    if (tensorboard) {
        output_text(out, "{");
        output_bytes(out, buffer_text(&w->text), w->text.length);
        output_text(out, w->any_run ? "}}" : "}");
        status = gather_finish(s, out, rc, w->series > 0, e);
    } else {
        report_total(w->report, "series", w->series);
        report_total(w->report, "damage", s->damaged);
        status = report_finish(w->report, s, rc, w->series > 0, e);
    }
    buffer_release(&w->text);
    selection_release(&w->plugins);
    return status;
}

/* TensorBoard's layout has all series of one plugin. */
static int tags_check(const struct report_options *o, struct selection *plugins, struct error *e)
{
    if (strcmp(o->to.format, "tb-json") != 0)
        return OK;
    if (plugins->patterns.count && !option_list_matches(&plugins->patterns, "scalars"))
        return error_set(e, ERR_ARG, "--format=tb-json lists only the plugin scalars; leave out --plugin");
    if (o->sort || o->top)
        return error_set(e, ERR_ARG, "--%s does not apply to --format=tb-json; leave one of them out",
                         o->sort ? "sort" : "top");
    plugins->patterns = (struct option_list){ { "scalars" }, 1 };
    return OK;
}

int command_tags(int argc, char **argv)
{
    static const struct output_format formats[] = { REPORT_FORMATS, { "tb-json", "json", 0 } };
    struct report_options o = { .sort = NULL };
    struct scan s = { .failed = 0 };
    struct tags_work w = { .series = 0 };
    struct option table[] = {
        SCAN_RUN_OPTION(s),
        SCAN_TAG_OPTION(s),
        { OPTION_LIST, 0, "plugin", &w.plugins.patterns, .argument = "GLOB",
          .help = "Take only series whose plugin matches GLOB: scalars, images, text, ...; may be repeated" },
        REPORT_OPTIONS(o),
        OUTPUT_OPTIONS(
            o.to, REPORT_WORDS "|tb-json", "text on a terminal and csv elsewhere",
            "Print a table, or a row or an object for each series; tb-json: what TensorBoard's scalars plugin answers"),
    };
    const struct options options = {
        .program = "eventlog tags",
        .usage = "[OPTION...] PATH...",
        .summary = "List the series of a log: run, tag, the plugin that shows it, and the name and description from "
                   "its metadata. Exit status: 0 done; 1 nothing matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog tags logs\n  eventlog tags logs --plugin=images\n",
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
        rc = tags_check(&o, &w.plugins, &e);
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_tags(&s, &w, &o, &e);
    scan_close(&s);
    return status;
}
