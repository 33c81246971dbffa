#include "eventlog/tool/watch/watch_page.h"

#include "base/human.h"
#include "base/program/table.h"
#include "base/program/time_text.h"
#include "base/text.h"
#include "eventlog/tool/picture/chart.h"
#include "eventlog/tool/picture/curves_picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TITLE_COLUMNS = 16, FIXED_COLUMNS = 4, VALUES_MOST = 8 };

static const struct cell_look plain = { 0, 0 }, bold = { 0, CELL_BOLD }, faint = { 0, CELL_FAINT };

/* Puts any text into the columns from `column` to before `end`, cut in the middle. */
static void put_cut(struct watch_page *p, int row, int column, int end, struct cell_look look, const char *text)
{
    struct buffer b = BUFFER_EMPTY;

    text_append_cut(&b, text, strlen(text), end > column ? (size_t)(end - column) : 0, p->ascii);
    cell_grid_put(&p->grid, row, column, end, look, buffer_text(&b), b.length);
    buffer_release(&b);
}

/* ---- title ----------------------------------------------------------------------------------------------------- */

/* The text at the right: "3 runs, 1 stalled, 1 not finite 10:31:05". */
static void put_title(struct watch_page *p, const struct watch_model *m, const struct watch_status *statuses,
                      double now)
{
    char time[TIME_TEXT_MAX], text[160];
    size_t counts[WATCH_STATES] = { 0 }, diverged = 0;
    int at, n = 0;

    for (size_t i = 0; i < m->run_count; i++) {
        counts[statuses[i].state]++;
        diverged += statuses[i].diverged != NULL;
    }
    n = snprintf(text, sizeof text, "%zu run%s", m->run_count, m->run_count == 1 ? "" : "s");
    if (counts[WATCH_STALLED])
        n += snprintf(text + n, sizeof text - (size_t)n, ", %zu stalled", counts[WATCH_STALLED]);
    if (diverged)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %zu NaN or inf", diverged);
    if (counts[WATCH_GONE])
        n += snprintf(text + n, sizeof text - (size_t)n, ", %zu gone", counts[WATCH_GONE]);
    time_text(TIME_SHORT, floor(now), time);
    if (n + (int)strlen("  10:31:05") <= m->columns)
        n += snprintf(text + n, sizeof text - (size_t)n, "  %s", time + strlen("2026-11-01 "));
    at = m->columns - n > 0 ? m->columns - n : 0;
    cell_grid_put(&p->grid, 0, at, m->columns, bold, text, (size_t)n);
    put_cut(p, 0, 0, at - 2, bold, m->title);
}

/* ---- the list of runs ------------------------------------------------------------------------------------------ */

static const char *state_text(const struct watch_status *s, char *out, size_t size)
{
    static const char *const words[WATCH_STATES] = { "empty", "live", "stalled", "ended", "old", "gone" };
    const char *value = "";

    if (s->diverged)
        value = isnan(s->diverged->points[s->diverged->count - 1].value) ? ", NaN" : ", inf";
    snprintf(out, size, "%s%s", words[s->state], value);
    return out;
}

static struct cell_look state_look(const struct watch_page *p, const struct watch_status *s)
{
    struct cell_look look = { 0, 0 };

    if (s->diverged)
        look = (struct cell_look){ CELL_RED, CELL_BOLD };
    else if (s->state == WATCH_STALLED)
        look = (struct cell_look){ CELL_YELLOW, CELL_BOLD };
    else if (s->state != WATCH_LIVE)
        look = faint;
    look.colour = p->colour ? look.colour : 0;
    return look;
}

/* The tags whose newest values are in the list: the selected one, then the others that have a chart. */
static size_t listed_tags(const struct watch_model *m, size_t *out)
{
    size_t n = 0;

    if (m->shown_tag_count)
        out[n++] = m->tag;
    for (size_t i = 0; i < m->layout.chart_count && n < VALUES_MOST; i++)
        if (m->shown_tags[m->layout.first_tag + i] != m->tag)
            out[n++] = m->shown_tags[m->layout.first_tag + i];
    return n;
}

static void add_row(struct table *t, const struct watch_model *m, const struct watch_run *r,
                    const struct watch_status *status, const size_t *tags, size_t tag_count)
{
    char age[HUMAN_TEXT_MAX], text[40];

    table_text(t, r->name, strlen(r->name));
    if (status->newest)
        table_cell(t, "%lld", (long long)status->newest->step);
    else
        table_cell(t, "-");
    if (!status->newest)
        table_cell(t, "-");
    else if (status->age < 10)
        table_cell(t, "%.0f s", floor(status->age));
    else
        table_cell(t, "%s", human_duration(status->age, age));
    table_cell(t, "%s", state_text(status, text, sizeof text));
    for (size_t i = 0; i < tag_count; i++) {
        const struct scalar_series *s = watch_model_series(m, r, tags[i]);

        if (s)
            table_number(t, s->points[s->count - 1].value);
        else
            table_cell(t, "-");
    }
}

/* Makes the table of runs: its title and all rows, and puts those in view. */
static void put_runs(struct watch_page *p, const struct watch_model *m, const struct watch_status *statuses)
{
    struct table_column columns[FIXED_COLUMNS + VALUES_MOST] = {
        { "run", 0, 8, 0 },
        { "step", 1, 0, 0 },
        { "    age", 1, 0, 1 },
        { "state", 0, 0, 0 },
    }; /* the column of ages is as wide as most of them, so that it does not move */
    const struct chart chart = { .ascii = p->ascii, .colour = p->colour };
    struct buffer titles[VALUES_MOST] = { BUFFER_EMPTY }, lines = BUFFER_EMPTY, sign = BUFFER_EMPTY;
    size_t tags[VALUES_MOST], count = listed_tags(m, tags), at = 0;
    struct table t;

    for (size_t i = 0; i < count; i++) {
        const struct tag_index_entry *tag = &m->tags.entries[tags[i]];

        text_append_cut(&titles[i], tag->text, tag->length, TITLE_COLUMNS, p->ascii);
        columns[FIXED_COLUMNS + i] = (struct table_column){ buffer_text(&titles[i]), 1, 0, i ? (int)i + 1 : 0 };
    }
    table_init(&t, columns, FIXED_COLUMNS + count);
    for (size_t i = 0; i < m->run_count; i++)
        add_row(&t, m, &m->runs[m->order[i]], &statuses[m->order[i]], tags, count);
    table_print(&t, WATCH_SIGN_COLUMNS, m->columns, p->ascii, &lines);
    for (const char *line = buffer_text(&lines), *end; (end = strchr(line, '\n')); line = end + 1, at++) {
        size_t number = at ? m->order[at - 1] : 0;
        int row = at ? m->layout.list.row + (int)(at - 1) - (int)m->top : 1;

        if (at && (at - 1 < m->top || row >= m->layout.list.row + m->layout.list.rows))
            continue;
        cell_grid_put(&p->grid, row, 0, m->columns, at ? state_look(p, &statuses[number]) : faint, line,
                      (size_t)(end - line));
        if (!at)
            continue;
        buffer_clear(&sign);
        chart_sign(&sign, &chart, &(struct picture){ .run_count = m->run_count, .styles = p->styles }, number);
        if (!m->runs[number].hidden)
            cell_grid_put(&p->grid, row, 2, m->columns, plain, buffer_text(&sign), sign.length);
        if (number == m->run) {
            cell_grid_put(&p->grid, row, 0, m->columns, plain, ">", 1);
            cell_grid_tint(&p->grid, row, 0, m->columns, (struct cell_look){ 0, CELL_REVERSE });
        }
    }
    for (size_t i = 0; i < count; i++)
        buffer_release(&titles[i]);
    buffer_release(&lines);
    buffer_release(&sign);
    table_release(&t);
}

/* ---- below the list -------------------------------------------------------------------------------------------- */

/* Of the selected run: "mpi/train: step 1200 at 2026-11-22 10:31:05; loss is NaN since step 900". */
static void put_selected(struct watch_page *p, const struct watch_model *m, const struct watch_status *statuses,
                         int row)
{
    const struct watch_run *r = &m->runs[m->run];
    const struct watch_status *s = &statuses[m->run];
    struct buffer b = BUFFER_EMPTY;
    char time[TIME_TEXT_MAX];

    buffer_append_text(&b, r->name);
    if (s->newest)
        buffer_format(&b, ": step %lld at %s", (long long)s->newest->step,
                      time_text(TIME_SHORT, floor(time_in_seconds(s->newest->wall_time)), time));
    else
        buffer_append_text(&b, ": no point yet");
    if (s->diverged) {
        const struct scalar_series *d = s->diverged;
        size_t from = d->count - 1;

        while (from && !isfinite(d->points[from - 1].value))
            from--;
        buffer_append_text(&b, "; ");
        buffer_append(&b, d->tag, d->tag_length);
        buffer_format(&b, " is %s since step %lld", isnan(d->points[d->count - 1].value) ? "NaN" : "infinite",
                      (long long)d->points[from].step);
    }
    if (r->gone)
        buffer_append_text(&b, "; its files are gone");
    if (r->hidden)
        buffer_append_text(&b, "; hidden");
    put_cut(p, row, 0, m->columns, state_look(p, s), buffer_text(&b));
    buffer_release(&b);
}

/* What is drawn, and how: "tags 1-4 of 14, filter 'loss'; x: step; smoothing 0.6". */
static void put_settings(struct watch_page *p, const struct watch_model *m, int row)
{
    static const char *const axes[PICTURE_AXES] = { "step", "step since the start", "time of day (UTC)",
                                                    "time since the start" };
    const struct watch_layout *l = &m->layout;
    struct buffer b = BUFFER_EMPTY;

    if (!m->shown_tag_count)
        buffer_append_text(&b, m->tags.count ? "no tag" : "no scalars yet");
    else if (l->chart_count > 1)
        buffer_format(&b, "tags %zu-%zu of %zu", l->first_tag + 1, l->first_tag + l->chart_count, m->shown_tag_count);
    else
        buffer_format(&b, "tag %zu of %zu", l->first_tag + 1, m->shown_tag_count);
    if (*m->filter)
        buffer_format(&b, m->shown_tag_count ? ", filter '%s'" : " matches the filter '%s'", m->filter);
    buffer_format(&b, "; x: %s", axes[m->axis]);
    if (m->smoothing > 0)
        buffer_format(&b, "; smoothing %.4g", m->smoothing);
    if (m->log_y)
        buffer_append_text(&b, "; logarithmic");
    put_cut(p, row, 0, m->columns, faint, buffer_text(&b));
    buffer_release(&b);
}

/* As many of the keys as fit, the filter while it is typed, or what went wrong. */
static void put_foot(struct watch_page *p, const struct watch_model *m)
{
    static const char *const keys[] = { "q quit",   "? help", "up/down run", "space show/hide", "Tab tag",
                                        "/ filter", "x axis", "l log",       "s smooth",        "c charts" };
    char text[WATCH_FILTER_MAX + 80];
    int row = m->rows - 1, column = 0;

    if (m->filtering) {
        snprintf(text, sizeof text, "filter tags: %s_  (Enter keeps it, Escape clears it)", m->filter);
        put_cut(p, row, 0, m->columns, bold, text);
        return;
    }
    if (*m->message) {
        put_cut(p, row, 0, m->columns, bold, m->message);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int n = (int)strlen(keys[i]);

        if (column + n > m->columns)
            break;
        cell_grid_put(&p->grid, row, column, m->columns, faint, keys[i], (size_t)n);
        column += n + 2;
    }
}

/* ---- charts ---------------------------------------------------------------------------------------------------- */

/* of one chart */
struct drawing {
    struct picture_curve *curves; /* room for a curve of each run */
    struct picture_point *points; /* and for all of their points */
    size_t count, used;
};

static int ascends(const struct scalar_series *s)
{
    size_t i = 1;

    while (i < s->count && s->points[i - 1].step <= s->points[i].step)
        i++;
    return i >= s->count;
}

/* Over steps the points must ascend: if a restart went back, draws a sorted copy. */
static int add_curve(struct drawing *d, const struct watch_model *m, size_t run, const struct scalar_series *s,
                     struct error *e)
{
    struct picture_curve *c = &d->curves[d->count++];
    struct scalar_series sorted = *s;
    int rc = OK;

    *c = (struct picture_curve){ .run = run, .points = d->points + d->used };
    if (picture_axis_counts(m->axis) && !ascends(s)) {
        sorted.marks = NULL;
        if (!(sorted.points = malloc(s->count * sizeof *s->points)))
            return error_memory(e, NULL, "for a chart");
        memcpy(sorted.points, s->points, s->count * sizeof *s->points);
        rc = scalar_series_sort(&sorted, e);
    }
    c->count = curves_picture_points(&sorted, m->axis,
                                     m->axis == PICTURE_RELATIVE ? time_in_seconds(m->runs[run].scalars.began) : 0,
                                     d->points + d->used);
    d->used += c->count;
    if (sorted.points != s->points)
        free(sorted.points);
    return rc;
}

static int fill_drawing(struct drawing *d, const struct watch_model *m, size_t tag, struct error *e)
{
    size_t points = 0;
    int rc = OK;

    for (size_t i = 0; i < m->run_count; i++) {
        const struct scalar_series *s = m->runs[i].hidden ? NULL : watch_model_series(m, &m->runs[i], tag);

        points += s ? s->count : 0;
    }
    d->curves = malloc((m->run_count + 1) * sizeof *d->curves);
    d->points = malloc((points + 1) * sizeof *d->points);
    if (!d->curves || !d->points)
        return error_memory(e, NULL, "for a chart");
    for (size_t i = 0; i < m->run_count && rc == OK; i++) {
        const struct scalar_series *s = m->runs[i].hidden ? NULL : watch_model_series(m, &m->runs[i], tag);

        if (s)
            rc = add_curve(d, m, i, s, e);
    }
    return rc;
}

static int draw_chart(struct watch_page *p, const struct watch_model *m, size_t i, struct error *e)
{
    struct watch_rectangle at = m->layout.charts[i];
    size_t tag = m->shown_tags[m->layout.first_tag + i];
    struct drawing d = { .count = 0 };
    struct buffer b = BUFFER_EMPTY;
    int row = at.row - m->layout.area.row, rc = fill_drawing(&d, m, tag, e);

    if (rc == OK) {
        const struct chart chart = {
            .columns = at.columns, .rows = at.rows - CHART_BARE_LINES, .ascii = p->ascii, .colour = p->colour, .bare = 1
        };
        const struct picture_panel panel = { .title = m->tags.entries[tag].text,
                                             .axis = m->axis,
                                             .curves = d.curves,
                                             .title_length = m->tags.entries[tag].length,
                                             .count = d.count };
        const struct picture picture = { .run_count = m->run_count,
                                         .styles = p->styles,
                                         .panels = &panel,
                                         .panel_count = 1,
                                         .low = NAN,
                                         .high = NAN,
                                         .smoothing = m->smoothing,
                                         .log_y = m->log_y };

        chart_draw(&b, &picture, &chart);
        if (!buffer_ok(&b))
            rc = error_memory(e, NULL, "for a chart");
    }
    for (const char *line = buffer_text(&b), *end; (end = strchr(line, '\n')); line = end + 1, row++)
        cell_grid_put(&p->charts, row, at.column, at.column + at.columns, plain, line, (size_t)(end - line));
    if (m->layout.chart_count > 1 && tag == m->tag)
        cell_grid_tint(&p->charts, at.row - m->layout.area.row, at.column, at.column + at.columns,
                       (struct cell_look){ 0, CELL_BOLD });
    buffer_release(&b);
    free(d.curves);
    free(d.points);
    return rc;
}

static int put_charts(struct watch_page *p, const struct watch_model *m, struct error *e)
{
    const struct watch_rectangle *area = &m->layout.area;
    int rc = OK;

    if (p->drawn != m->version || area->columns != p->charts.columns || area->rows != p->charts.rows) {
        if (!cell_grid_begin(&p->charts, area->columns, area->rows))
            return error_memory(e, NULL, "for charts");
        for (size_t i = 0; i < m->layout.chart_count && rc == OK; i++)
            rc = draw_chart(p, m, i, e);
        p->drawn = m->version;
    }
    cell_grid_copy(&p->grid, area->row, area->column, &p->charts);
    return rc;
}

/* ---- the page -------------------------------------------------------------------------------------------------- */

static void put_help(struct watch_page *p, const struct watch_model *m)
{
    static const char *const lines[] = {
        "up, down, j, k      select a run; Page Up, Page Down, Home, End",
        "space               show or hide the selected run",
        "Tab, left, right    select a tag",
        "/                   show tags whose name contains a text, or matches a pattern",
        "x                   draw over steps, time since the start, time of day",
        "l                   logarithmic scale",
        "s                   smoothing: 0.6, 0.9, 0.97, none",
        "c                   one large chart, or as many as fit",
        "mouse               click a run, its mark (show or hide), a chart; wheel",
        "q, Ctrl-C           quit",
        "",
        "state   live; stalled: silent for long; ended: its process, too, is gone;",
        "        old: silent for a day; gone: no files; NaN, inf: of a newest value",
    };
    static const char *const marks[] = { "marks   triangles: NaN, +inf, -inf; arrows: beyond the axis",
                                         "marks   ! NaN; ^ v: +inf, -inf, or beyond the axis" };
    int row = 2;

    put_cut(p, 0, 0, m->columns, bold, "eventlog watch: keys");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        put_cut(p, row++, 2, m->columns, plain, lines[i]);
    put_cut(p, row, 2, m->columns, plain, marks[p->ascii]);
    put_cut(p, m->rows - 1, 0, m->columns, faint, "any key leads back");
}

static const char *name_of(const void *model, size_t run)
{
    return ((const struct watch_model *)model)->runs[run].name;
}

static int put_page(struct watch_page *p, const struct watch_model *m, double now, struct error *e)
{
    struct watch_status *statuses = malloc((m->run_count + 1) * sizeof *statuses);
    size_t *styles = realloc(p->styles, (m->run_count + 1) * sizeof *styles);
    int below = m->layout.list.row + m->layout.list.rows, foot = m->rows - 1, rc = OK;

    p->styles = styles ? styles : p->styles;
    if (!statuses || !styles) {
        free(statuses);
        return error_memory(e, NULL, "for %zu runs", m->run_count);
    }
    run_styles(name_of, m, m->run_count, styles);
    for (size_t i = 0; i < m->run_count; i++)
        statuses[i] = watch_status_of(&m->runs[i], now, m->stalled_after);
    put_title(p, m, statuses, now);
    if (m->run_count) {
        put_runs(p, m, statuses);
        if (below < foot)
            put_selected(p, m, statuses, below);
        if (below + 1 < foot)
            put_settings(p, m, below + 1);
        rc = put_charts(p, m, e);
    } else {
        put_cut(p, 2, 0, m->columns, plain, "no event files (names with 'tfevents') yet; waiting");
    }
    put_foot(p, m);
    free(statuses);
    return rc;
}

int watch_page_draw(struct watch_page *p, struct watch_model *m, double now, struct error *e)
{
    int rc = OK;

    p->grid.ascii = p->charts.ascii = p->ascii;
    if (!cell_grid_begin(&p->grid, m->columns, m->rows))
        return error_memory(e, NULL, "for a page");
    watch_model_lay_out(m);
    if (m->help)
        put_help(p, m);
    else
        rc = put_page(p, m, now, e);
    return rc;
}

void watch_page_release(struct watch_page *p)
{
    cell_grid_release(&p->grid);
    cell_grid_release(&p->charts);
    free(p->styles);
}
