/* eventlog tags: the series of a log with their plugin and what their metadata says. */
#include "base/json.h"
#include "eventlog/summary_metadata.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/export.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/output_format.h"

#include <string.h>

struct work {
    struct buffer text;
    const char *format;
    struct selection plugins;
    uint64_t series;
    int any_run;
};

static void write_csv(struct work *w, const char *run, const struct scalar_series *s, const struct summary_metadata *m)
{
    export_field(&w->text, run, strlen(run), 0);
    buffer_append_byte(&w->text, ',');
    export_field(&w->text, s->tag, s->tag_length, 0);
    buffer_append_byte(&w->text, ',');
    export_field(&w->text, s->plugin, strlen(s->plugin), 0);
    buffer_append_byte(&w->text, ',');
    export_field(&w->text, (const char *)m->display_name.bytes, m->display_name.length, 0);
    buffer_append_byte(&w->text, ',');
    export_field(&w->text, (const char *)m->description.bytes, m->description.length, 0);
    buffer_append_byte(&w->text, '\n');
}

static void write_tensorboard(struct work *w, const struct scalar_series *s, const struct summary_metadata *m)
{
    json_span(&w->text, s->tag, s->tag_length, 1);
    buffer_append_text(&w->text, ": {\"displayName\": ");
    json_span(&w->text, (const char *)m->display_name.bytes, m->display_name.length, 1);
    buffer_append_text(&w->text, ", \"description\": ");
    json_span(&w->text, (const char *)m->description.bytes, m->description.length, 1);
    buffer_append_byte(&w->text, '}');
}

static void write_object(struct work *w, const char *run, const struct scalar_series *s,
                         const struct summary_metadata *m)
{
    buffer_append_text(&w->text, "{\"run\":");
    json_text(&w->text, run);
    buffer_append_text(&w->text, ",\"tag\":");
    json_span(&w->text, s->tag, s->tag_length, 0);
    buffer_append_text(&w->text, ",\"plugin\":");
    json_text(&w->text, s->plugin);
    buffer_append_text(&w->text, ",\"display_name\":");
    json_span(&w->text, (const char *)m->display_name.bytes, m->display_name.length, 0);
    buffer_append_text(&w->text, ",\"description\":");
    json_span(&w->text, (const char *)m->description.bytes, m->description.length, 0);
    buffer_append_byte(&w->text, '}');
}

static int one_run(void *context, const char *name, struct scalar_run *scalars, struct error *e)
{
    struct work *w = context;
    int any = 0;

    for (size_t i = 0; i < scalars->count; i++) {
        const struct scalar_series *s = &scalars->series[i];
        struct summary_metadata m;

        if ((!s->seen && !s->skipped) || !selection_wants(&w->plugins, s->plugin))
            continue;
        summary_metadata_read(&m, (const uint8_t *)(s->metadata ? s->metadata : ""), s->metadata_length);
        if (!strcmp(w->format, "csv")) {
            write_csv(w, name, s, &m);
        } else if (!strcmp(w->format, "json")) {
            buffer_append_text(&w->text, w->series ? ",\n" : "[\n");
            write_object(w, name, s, &m);
        } else {
            if (!any) {
                buffer_append_text(&w->text, w->any_run ? ", " : "");
                json_span(&w->text, name, strlen(name), 1);
            }
            buffer_append_text(&w->text, any ? ", " : ": {");
            write_tensorboard(w, s, &m);
        }
        w->any_run = any = 1;
        w->series++;
    }
    if (any && !strcmp(w->format, "tb-json"))
        buffer_append_byte(&w->text, '}');
    return buffer_ok(&w->text) ? OK : error_set(e, ERR_NOMEM, "out of memory for the tags of run %s", name);
}

static int write_tags(struct scan *s, struct work *w, const struct output_options *to, struct error *e)
{
    const struct gather g = { .range = POINT_RANGE_ALL, .run = one_run, .context = w,
                              .no_points = 1 };
    struct output *out;
    int rc = output_open(&out, to->path, to->force, e);

    w->format = to->format;

    if (rc != OK)
        return scan_fail(s, e);
    buffer_append_text(&w->text, !strcmp(w->format, "csv")       ? "run,tag,plugin,display_name,description\n"
                                 : !strcmp(w->format, "tb-json") ? "{"
                                                                 : "");
    rc = gather_runs(s, &g, e);
    buffer_append_text(&w->text, !strcmp(w->format, "tb-json") ? "}"
                                 : strcmp(w->format, "json")   ? ""
                                 : w->series                   ? "\n]\n"
                                                               : "[]\n");
    output_bytes(out, buffer_text(&w->text), w->text.length);
    s->unmatched += selection_tell(&w->plugins, "--plugin", "plugin", &s->log);
    selection_release(&w->plugins);
    return gather_finish(s, out, rc, w->series > 0, e);
}

int command_tags(int argc, char **argv)
{
    static const struct output_format formats[] = { { "csv", "csv", 0 }, { "json", "json", 0 },
                                                    { "tb-json", "json", 0 } };
    struct output_options to = { .format = NULL };
    struct scan s = { .failed = 0 };
    struct work w = { .series = 0 };
    struct option table[] = {
        SCAN_RUN_OPTION(s), SCAN_TAG_OPTION(s),
        { OPTION_LIST, 0, "plugin", &w.plugins.patterns, .argument = "GLOB", .help = "Take only series of plugins "
          "whose name matches: scalars, images, text, ...; may be repeated" },
        OUTPUT_OPTIONS(to, "csv|json|tb-json", "csv", "Print a row or an object for each series; tb-json: what "
                       "TensorBoard's scalars plugin answers, scalars only"),
    };
    const struct options options = {
        .program = "eventlog tags", .usage = "[OPTION...] PATH...",
        .summary = "Lists the series of a log: run, tag, the plugin that shows it, and the name and description "
        "that its "
                   "metadata holds. Status 1: nothing matched, or damage; 2: usage or I/O.",
        .examples = "  eventlog tags logs\n  eventlog tags logs --plugin=images\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which log directory?",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK)
        rc = output_format_settle(&to, formats, sizeof formats / sizeof *formats, "csv", &e);
    if (rc == OK && !strcmp(to.format, "tb-json")) {
        if (w.plugins.patterns.count && !option_list_matches(&w.plugins.patterns, "scalars"))
            rc = error_set(&e, ERR_ARG, "--format=tb-json lists the plugin scalars only; leave out --plugin");
        w.plugins.patterns = (struct option_list){ { "scalars" }, 1 };
    }
    if (rc != OK)
        return scan_fail(&s, &e);
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_tags(&s, &w, &to, &e);
    buffer_release(&w.text);
    scan_close(&s);
    return status;
}
