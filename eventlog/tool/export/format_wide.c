/* wide: one row per run and step, one column per tag. The header needs all tags before the first row, so all points are
 * in memory by then. */
#include "eventlog/tool/export/export_columns.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of one column within a run; series NULL: the run has no such tag */
struct wide_cursor {
    const struct scalar_series *series;
    size_t next;
};

struct wide_options {
    int no_run, wall_time;
};

_Static_assert(sizeof(struct wide_options) <= EXPORT_OWN_SIZE, "they have room");

static int with_run(const struct export *x)
{
    const struct wide_options *own = x->own;

    return !own->no_run;
}

static int with_time(const struct export *x)
{
    const struct wide_options *own = x->own;

    return own->wall_time || x->options->time;
}

static void header(struct export *x, const struct export_columns *columns)
{
    static const char *const taken[] = { "run", "step", "wall_time" };
    struct buffer line = BUFFER_EMPTY;

    if (with_run(x)) {
        buffer_append_text(&line, "run");
        buffer_append_byte(&line, x->between);
    }
    buffer_append_text(&line, "step");
    if (with_time(x)) {
        buffer_append_byte(&line, x->between);
        buffer_append_text(&line, "wall_time");
    }
    for (size_t i = 0; i < columns->tags.count; i++) {
        const struct tag_index_entry *tag = columns->order[i];
        struct buffer name = BUFFER_EMPTY;

        for (size_t k = 0; k < 3; k++)
            if (tag->length == strlen(taken[k]) && !memcmp(tag->text, taken[k], tag->length))
                buffer_append_text(&name, "tag:");
        buffer_append(&name, tag->text, tag->length);
        buffer_append_byte(&line, x->between);
        export_field(&line, buffer_text(&name), name.length, x->tsv);
        buffer_release(&name);
    }
    buffer_append_text(&line, x->line_end);
    output_bytes(x->out, line.data, line.length);
    buffer_release(&line);
}

static int row(struct export *x, const char *run, int64_t step, struct wide_cursor *cursors, size_t columns,
               struct buffer *line, struct error *e)
{
    char text[64];
    double wall_time = NAN;
    size_t at_wall_time;

    buffer_clear(line);
    if (with_run(x)) {
        export_field(line, run, strlen(run), x->tsv);
        buffer_append_byte(line, x->between);
    }
    buffer_append(line, text, (size_t)number_text_integer(step, text));
    at_wall_time = line->length;
    for (size_t i = 0; i < columns; i++) {
        const struct scalar_series *s = cursors[i].series;
        size_t first = cursors[i].next, next = first;
        double value;
        unsigned from;

        for (; s && next < s->count && s->points[next].step == step; next++)
            if (!(wall_time >= s->points[next].wall_time))
                wall_time = s->points[next].wall_time;
        cursors[i].next = next;
        buffer_append_byte(line, x->between);
        if (next == first)
            continue;
        x->points += next - first;
        if (export_columns_value(x, run, s, first, next, &value, &from, e) != OK)
            return ERR_ARG;
        buffer_append(line, text, (size_t)export_csv_number(x, value, from, text));
    }
    buffer_append_text(line, x->line_end);
    if (!buffer_ok(line))
        return error_memory(e, NULL, "for a row of %zu columns", columns);
    output_bytes(x->out, line->data, at_wall_time);
    if (with_time(x)) {
        output_bytes(x->out, &x->between, 1);
        output_bytes(x->out, text, (size_t)export_time(x, wall_time, text));
    }
    output_bytes(x->out, line->data + at_wall_time, line->length - at_wall_time);
    return OK;
}

static void find_cursors(const struct scalar_run *run, struct export_columns *columns, struct wide_cursor *cursors)
{
    for (size_t i = 0; i < columns->tags.count; i++)
        cursors[i] = (struct wide_cursor){ NULL, 0 };
    for (size_t i = 0; i < run->count; i++)
        if (run->series[i].count)
            cursors[export_columns_place(columns, &run->series[i])].series = &run->series[i];
}

/* 1 and the smallest step that any column still has. */
static int next_step(const struct wide_cursor *cursors, size_t count, int64_t *step)
{
    int found = 0;

    for (size_t i = 0; i < count; i++) {
        const struct scalar_series *s = cursors[i].series;

        if (!s || cursors[i].next == s->count)
            continue;
        if (!found || s->points[cursors[i].next].step < *step)
            *step = s->points[cursors[i].next].step;
        found = 1;
    }
    return found;
}

/* Without a column for it, one run alone may have points. */
static int check_runs(const struct export *x, const struct export_run *runs, size_t count, struct error *e)
{
    size_t with_points = 0;

    for (size_t i = 0; i < count; i++) {
        int points = 0;

        for (size_t k = 0; k < runs[i].scalars.count; k++)
            points |= runs[i].scalars.series[k].count > 0;
        with_points += (size_t)points;
    }
    if (!with_run(x) && with_points > 1)
        return error_set(e, ERR_ARG, "--no-run: %zu runs are selected; select one with --run", with_points);
    return OK;
}

static int wide_runs(struct export *x, struct export_run *runs, size_t count, struct error *e)
{
    struct export_columns columns;
    struct buffer line = BUFFER_EMPTY;
    struct wide_cursor *cursors = NULL;
    size_t n;
    int rc;

    if (check_runs(x, runs, count, e) != OK)
        return ERR_ARG;
    rc = export_columns_find(&columns, x, runs, count, e);
    n = columns.tags.count;
    if (rc == OK && !(cursors = malloc((n + 1) * sizeof *cursors)))
        rc = error_memory(e, NULL, "for %zu columns", n);
    if (rc == OK)
        header(x, &columns);
    for (size_t i = 0; i < count && rc == OK; i++) {
        int64_t step = 0;

        find_cursors(&runs[i].scalars, &columns, cursors);
        while (rc == OK && next_step(cursors, n, &step))
            rc = row(x, runs[i].name, step, cursors, n, &line, e);
    }
    buffer_release(&line);
    export_columns_release(&columns);
    free(cursors);
    return rc;
}

static size_t wide_rows(struct option *rows, void *own)
{
    struct wide_options *o = own;

    rows[0] = (struct option){ OPTION_FLAG, 0, "no-run", &o->no_run,
                               .help = ": Leave out the column 'run'; allowed for a single run" };
    rows[1] = (struct option){ OPTION_FLAG, 0, "wall-time", &o->wall_time,
                               .help = ": Add a column with the latest wall time of the row" };
    return 2;
}

const struct export_format format_wide = {
    .name = "wide",
    .help = "a row for each step with a column for each tag",
    .extensions = "csv tsv",
    .takes = "view nonfinite time float32 tsv crlf columns dup",
    .by_step = 1,
    .rows = wide_rows,
    .runs = wide_runs,
};
