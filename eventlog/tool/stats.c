/* eventlog stats: a line of figures per series. */
#include "base/json.h"
#include "base/number.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/export.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/output_format.h"

#include <math.h>
#include <string.h>

struct figures {
    size_t count, nan_count, finite;
    struct scalar_point first, last, min, max; /* min, max: of what is no NaN, the first of equals */
    double mean, std;                          /* of what is finite; std over n - 1 */
};

struct work {
    struct output *out;
    const char *format;
    uint64_t series;
};

static void compute(const struct scalar_series *s, struct figures *f)
{
    double sum = 0, squares = 0;

    memset(f, 0, sizeof *f);
    f->count = s->count;
    f->first = s->points[0];
    f->last = s->points[s->count - 1];
    for (size_t i = 0; i < s->count; i++) {
        const struct scalar_point *p = &s->points[i];

        if (isnan(p->value)) {
            f->nan_count++;
            continue;
        }
        if (i == f->nan_count) /* the first that is none */
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
    f->mean = sum / (double)f->finite;
    for (size_t i = 0; i < s->count; i++)
        if (isfinite(s->points[i].value))
            squares += (s->points[i].value - f->mean) * (s->points[i].value - f->mean);
    f->std = sqrt(squares / (double)(f->finite - 1));
}

/* ---- a series as a row or an object ---------------------------------------------------------------------------- */

enum { COLUMNS = 14 };
static const char *const columns[COLUMNS] = { "run", "tag", "count", "nan_count", "first_step", "first", "last_step",
                                              "last", "min_step", "min", "max_step", "max", "mean", "std" };

/* The text of a column from `count` on, as JSON or CSV; empty where there is no such figure. */
static size_t column_text(const struct figures *f, int column, int json, char *out)
{
    const struct scalar_point *points[] = { &f->first, &f->last, &f->min, &f->max };
    struct buffer text = BUFFER_EMPTY;
    const struct scalar_point *p;
    double v;

    if (column == 2 || column == 3)
        return (size_t)export_integer((int64_t)(column == 2 ? f->count : f->nan_count), out);
    if (column >= 12) {
        if (f->finite < (column == 12 ? 1 : 2))
            return 0;
        v = column == 12 ? f->mean : f->std;
    } else {
        p = points[(column - 4) / 2];
        if (column >= 8 && f->nan_count == f->count)
            return 0;
        if (column % 2 == 0)
            return (size_t)export_integer(p->step, out);
        v = p->value;
    }
    if (!json)
        return (size_t)number_text(v, out);
    json_double(&text, v);
    memcpy(out, buffer_text(&text), text.length);
    v = (double)text.length;
    buffer_release(&text);
    return (size_t)v;
}

static void object(struct buffer *b, const char *run, const struct scalar_series *s, const struct figures *f)
{
    char text[40];

    buffer_append_text(b, "{\"run\":");
    json_text(b, run);
    buffer_append_text(b, ",\"tag\":");
    json_span(b, s->tag, s->tag_length, 0);
    for (int i = 2; i < COLUMNS; i++) {
        size_t n = column_text(f, i, 1, text);

        buffer_format(b, ",\"%s\":%.*s", columns[i], n ? (int)n : 4, n ? text : "null");
    }
    buffer_append_text(b, "}");
}

static void row(struct buffer *b, const char *run, const struct scalar_series *s, const struct figures *f)
{
    char text[40];

    export_field(b, run, strlen(run), 0);
    buffer_append_byte(b, ',');
    export_field(b, s->tag, s->tag_length, 0);
    for (int i = 2; i < COLUMNS; i++) {
        buffer_append_byte(b, ',');
        buffer_append(b, text, column_text(f, i, 0, text));
    }
    buffer_append_byte(b, '\n');
}

static int one_run(void *context, const char *name, struct scalar_run *scalars, struct error *e)
{
    struct work *w = context;

    for (size_t i = 0; i < scalars->count; i++) {
        const struct scalar_series *s = &scalars->series[i];
        struct buffer b = BUFFER_EMPTY;
        struct figures f;
        int good;

        if (!s->count)
            continue;
        compute(s, &f);
        if (!strcmp(w->format, "csv")) {
            row(&b, name, s, &f);
        } else {
            buffer_append_text(&b, !strcmp(w->format, "jsonl") ? "" : w->series ? ",\n" : "[\n");
            object(&b, name, s, &f);
            buffer_append_text(&b, !strcmp(w->format, "jsonl") ? "\n" : "");
        }
        good = buffer_ok(&b);
        output_bytes(w->out, buffer_text(&b), b.length);
        buffer_release(&b);
        if (!good)
            return error_set(e, ERR_NOMEM, "out of memory for a row");
        w->series++;
    }
    return OK;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int write_stats(struct scan *s, struct work *w, const struct gather *g, const struct output_options *to,
                       struct error *e)
{
    int rc = output_open(&w->out, to->path, to->force, e);

    w->format = to->format;

    if (rc != OK)
        return scan_fail(s, e);
    for (int i = 0; !strcmp(w->format, "csv") && i < COLUMNS; i++) {
        output_text(w->out, i ? "," : "");
        output_text(w->out, columns[i]);
    }
    output_text(w->out, !strcmp(w->format, "csv") ? "\n" : "");
    rc = gather_runs(s, g, e);
    if (!strcmp(w->format, "json"))
        output_text(w->out, w->series ? "\n]\n" : "[]\n");
    return gather_finish(s, w->out, rc, w->series > 0, e);
}

int command_stats(int argc, char **argv)
{
    static const struct output_format formats[] = { { "csv", "csv", 0 }, { "json", "json", 0 },
                                                    { "jsonl", "jsonl ndjson", 0 } };
    struct output_options to = { .format = NULL };
    struct scan s = { .failed = 0 };
    struct work w = { .out = NULL };
    struct gather g = { .range = POINT_RANGE_ALL, .run = one_run, .context = &w };
    const char *view = "all";
    struct option table[] = {
        SCAN_RUN_OPTION(s), SCAN_TAG_OPTION(s),
        POINT_RANGE_OPTIONS(g.range),
        { OPTION_CHOICE, 0, "view", &view, .help = "every point; what TensorBoard would show; or what restarts meant "
          "(default all)", .choices = "all|tensorboard|session" },
        OUTPUT_OPTIONS(to, "csv|json|jsonl", "csv", "Print a row or an object for each series"),
    };
    const struct options options = {
        .program = "eventlog stats", .usage = "[OPTION...] PATH...",
        .summary = "Figures of every series of numbers: how many points and NaN; first and last in reading order; "
        "least and "
                   "greatest with the step where they first stand; mean and standard deviation (over n - 1) of what is "
                   "finite. Status 1: nothing matched, or damage; 2: usage or I/O.",
        .examples = "  eventlog stats logs --tag='*acc*'\n"
                    "  eventlog stats logs --json | jq -r '.[] | select(.nan_count > 0) | .run + \" \" + .tag'\n",
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
    if (rc == OK)
        rc = point_range_settle(&g.range, &e);
    if (rc != OK)
        return scan_fail(&s, &e);
    g.view = scalar_view_of(view);
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) == EXIT_DONE)
        status = write_stats(&s, &w, &g, &to, &e);
    scan_close(&s);
    return status;
}
