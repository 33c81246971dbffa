#include "eventlog/tool/picture/curves_picture.h"

#include "base/bytes.h"
#include "base/program/time_text.h"
#include "base/text.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/picture/curve_group.h"
#include "eventlog/tool/picture/picture_png.h"
#include "eventlog/tool/picture/picture_range.h"
#include "eventlog/tool/picture/tag_better.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- curves ------------------------------------------------------------------------------------------------------ */

enum { NAMES_SAID = 6, LINES_SAID = 8 };

int curves_settle(struct curves *w, struct error *e)
{
    w->low = w->high = NAN;
    if (w->y_range && !picture_range_parse(w->y_range, &w->low, &w->high))
        return error_set(e, ERR_ARG, "--y-range: '%s' is not LOW,HIGH with LOW below HIGH", w->y_range);
    if (w->log_y && (w->low <= 0 || w->high <= 0))
        return error_set(e, ERR_ARG, "--y-range: --log-y cannot show '%s'; give numbers above 0", w->y_range);
    if (curve_group_check(&w->groups, e) != OK)
        return ERR_ARG;
    return point_range_settle(&w->range, e);
}

/* A name may contain '=': if several runs match, the one with the longest name is meant. */
static int label_run(struct curves *w, const char *option, struct error *e)
{
    size_t longest = 0, run = w->count;

    if (!strchr(option, '='))
        return error_set(e, ERR_ARG, "--label: '%s' is not RUN=TEXT", option);
    for (size_t i = 0; i < w->count; i++) {
        size_t n = strlen(w->names[i]);

        if (n > longest && !strncmp(option, w->names[i], n) && option[n] == '=') {
            longest = n;
            run = i;
        }
    }
    if (run == w->count) {
        char name[256];
        const char *near;

        snprintf(name, sizeof name, "%.*s", (int)strcspn(option, "="), option);
        near = options_nearest(name, w->names, w->count);
        return error_set(e, ERR_ARG, "--label: no run is called '%s'%s%s%s", name, near ? "; did you mean '" : "",
                         near ? near : "", near ? "'?" : "; 'eventlog inspect' lists the runs");
    }
    w->labels[run] = option + longest + 1;
    return OK;
}

static struct curves_start start_of(const struct scalar_run *run)
{
    struct curves_start first = { INFINITY, INFINITY };

    for (size_t i = 0; i < run->count; i++)
        for (size_t k = 0; k < run->series[i].count; k++) {
            const struct eventlog_point *p = &run->series[i].points[k];

            first.wall_time = p->wall_time < first.wall_time ? p->wall_time : first.wall_time;
            first.step = (double)p->step < first.step ? (double)p->step : first.step;
        }
    return first;
}

int curves_read(struct curves *w, struct error *e)
{
    const struct log_directory *d = &w->scan->directory;

    scan_natural_order(&w->scan->directory);
    w->runs = calloc(d->count + 1, sizeof *w->runs);
    w->names = calloc(d->count + 1, sizeof *w->names);
    w->labels = calloc(d->count + 1, sizeof *w->labels);
    w->starts = calloc(d->count + 1, sizeof *w->starts);
    if (!w->runs || !w->names || !w->labels || !w->starts)
        return error_memory(e, NULL, "for %zu runs", d->count);
    for (const struct log_run *run = NULL; (run = scan_next_run(w->scan, run));) {
        struct scalar_run *r = &w->runs[w->count];
        int rc;

        w->labels[w->count] = w->names[w->count] = run->name;
        w->count++;
        scalar_run_init(r, scalar_view_of(w->view), 0, 1);
        rc = gather_run(w->scan, run, r, NULL, NULL, e);
        for (size_t k = 0; k < r->count; k++)
            gather_sift(&r->series[k], &w->range, 0);
        scalar_run_sort(r);
        gather_seconds(r);
        w->starts[w->count - 1] = start_of(r);
        if (rc != OK)
            return rc;
    }
    for (size_t i = 0; i < w->label_options.count; i++)
        if (label_run(w, w->label_options.items[i], e) != OK)
            return ERR_ARG;
    return OK;
}

int curves_sort_by_step(struct curves *w, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count && rc == OK; k++)
            rc = scalar_series_sort(&w->runs[i].series[k], e);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    const struct curves_tag *x = a, *y = b;

    return bytes_compare(x->text, x->length, y->text, y->length);
}

static int by_tag(const void *tag, const void *series)
{
    const struct curves_tag *x = tag;
    const struct scalar_series *y = series;

    return bytes_compare(x->text, x->length, y->tag, y->tag_length);
}

/* The series of a run are sorted by tag since it was read. */
const struct scalar_series *curves_series(const struct curves *w, size_t run, const struct curves_tag *tag)
{
    const struct scalar_run *r = &w->runs[run];
    const struct scalar_series *s = r->count ? bsearch(tag, r->series, r->count, sizeof *s, by_tag) : NULL;

    return s && s->count ? s : NULL;
}

/* ---- tags that only some runs have ------------------------------------------------------------------------------- */

static int same_runs(const struct curves *w, const struct curves_tag *a, const struct curves_tag *b)
{
    if (a->runs != b->runs)
        return 0;
    for (size_t i = 0; i < w->count; i++)
        if (!curves_series(w, i, a) != !curves_series(w, i, b))
            return 0;
    return 1;
}

/* Name number `at` of a list, if it is one of the first. */
static void list_name(struct buffer *b, const char *text, size_t length, size_t at)
{
    if (at >= NAMES_SAID)
        return;
    buffer_append_text(b, at ? ", " : "");
    text_append_cut(b, text, length, TEXT_NAME_MOST, 0);
}

static void list_end(struct buffer *b, size_t count)
{
    if (count > NAMES_SAID)
        buffer_format(b, " and %zu more", count - NAMES_SAID);
}

/* Logs which runs have this tag, which not all have, with the tags behind it that just these runs have. */
static void say_alike(struct curves *w, struct curves_tag *tag, size_t count, const char *then)
{
    struct buffer runs = BUFFER_EMPTY, tags = BUFFER_EMPTY;
    size_t run = 0, alike = 0;

    for (size_t i = 0; i < count; i++)
        if (!tag[i].said && same_runs(w, tag, &tag[i])) {
            list_name(&tags, tag[i].text, tag[i].length, alike++);
            tag[i].said = 1;
        }
    for (size_t i = 0; i < w->count; i++)
        if (curves_series(w, i, tag))
            list_name(&runs, w->names[i], strlen(w->names[i]), run++);
    list_end(&tags, alike);
    list_end(&runs, tag->runs);
    log_line(&w->scan->log, "only %s %s %s%s", buffer_text(&runs), tag->runs == 1 ? "has" : "have", buffer_text(&tags),
             then);
    buffer_release(&runs);
    buffer_release(&tags);
}

static void say_partial(struct curves *w, size_t count, int left_out)
{
    size_t lines = 0, others = 0;

    for (size_t i = 0; i < count; i++)
        if (w->tags[i].runs < w->count && !w->tags[i].said) {
            if (lines++ < LINES_SAID)
                say_alike(w, &w->tags[i], count - i, left_out ? "; left out, --tag shows them" : "");
            else
                others++;
        }
    if (others)
        log_line(&w->scan->log, "only some runs have %zu other tags", others);
}

/* The tags to show: with --tag all that match, else those that all runs have, else all. */
int curves_choose_tags(struct curves *w, struct error *e)
{
    size_t n = 0, kept = 0, common = 0;
    int left_out;

    for (size_t i = 0; i < w->count; i++)
        n += w->runs[i].count;
    if (!(w->tags = malloc((n + 1) * sizeof *w->tags)))
        return error_memory(e, NULL, "for %zu tags", n);
    n = 0;
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++) {
            const struct scalar_series *s = &w->runs[i].series[k];

            if (!scan_tag_wanted(w->scan, s->tag))
                continue;
            scan_series(w->scan, s);
            if (s->count)
                w->tags[n++] = (struct curves_tag){ .text = s->tag, .length = s->tag_length, .runs = 1 };
        }
    qsort(w->tags, n, sizeof *w->tags, by_text);
    for (size_t i = 0; i < n; i++)
        if (kept && !by_text(&w->tags[kept - 1], &w->tags[i]))
            w->tags[kept - 1].runs++;
        else
            w->tags[kept++] = w->tags[i];
    for (size_t i = 0; i < kept; i++)
        common += w->tags[i].runs == w->count;
    left_out = !w->scan->tags.patterns.count && common;
    say_partial(w, kept, left_out);
    if (left_out) {
        n = 0;
        for (size_t i = 0; i < kept; i++)
            if (w->tags[i].runs == w->count)
                w->tags[n++] = w->tags[i];
        kept = n;
    }
    w->tag_count = kept;
    for (size_t i = 0; i < kept; i++) {
        int lower = w->lower.patterns.count && selection_wants(&w->lower, w->tags[i].text);
        int higher = w->higher.patterns.count && selection_wants(&w->higher, w->tags[i].text);

        w->tags[i].better = higher ? 1 : lower ? -1 : tag_better(w->tags[i].text);
    }
    if (kept)
        w->scan->unmatched += selection_tell(&w->lower, "--lower", "tag", &w->scan->log) +
                              selection_tell(&w->higher, "--higher", "tag", &w->scan->log);
    return OK;
}

void curves_release(struct curves *w)
{
    for (size_t i = 0; i < w->count; i++)
        scalar_run_release(&w->runs[i]);
    free(w->runs);
    free(w->names);
    free(w->labels);
    free(w->starts);
    free(w->tags);
    selection_release(&w->lower);
    selection_release(&w->higher);
}

/* ---- curves picture ---------------------------------------------------------------------------------------------- */

enum { PNG_SCALE = 2 }; /* sharp on screens of many pixels */

/* ---- lines ----------------------------------------------------------------------------------------------------- */

/* Appends the name of the run's group under --group; with --band alone, all runs are one group. */
static size_t group_of(const struct curves *w, const char *run, struct buffer *name)
{
    size_t option = curve_group_name(&w->groups, run, name);

    if (w->groups.count || !w->band)
        return option;
    buffer_append_text(name, "mean");
    return 1;
}

/* Adds the run to the line of its group, or begins one. */
static int place_run(struct curves_picture *p, const struct curves *w, size_t run, struct error *e)
{
    struct curves_line *line = &p->lines[p->line_count];
    size_t at = 0;

    line->option = group_of(w, w->names[run], &line->group);
    if (!buffer_ok(&line->group))
        return error_memory(e, NULL, "for the groups of runs");
    for (; at < p->line_count; at++)
        if (line->option && p->lines[at].option && !strcmp(buffer_text(&line->group), buffer_text(&p->lines[at].group)))
            break;
    if (at < p->line_count)
        buffer_release(&line->group);
    else
        p->line_count++;
    p->lines[at].runs++;
    p->line_of[run] = at;
    p->lines[at].name = p->lines[at].option ? buffer_text(&p->lines[at].group) : w->names[run];
    if (p->lines[at].runs == 1)
        buffer_append_text(&p->lines[at].label, p->lines[at].option ? p->lines[at].name : w->labels[run]);
    return OK;
}

static int find_lines(struct curves_picture *p, const struct curves *w, struct error *e)
{
    uint64_t matched = 0;
    int rc = OK;

    for (size_t i = 0; i < w->count && rc == OK; i++)
        rc = place_run(p, w, i, e);
    for (size_t i = 0; i < p->line_count && rc == OK; i++) {
        struct curves_line *line = &p->lines[i];

        matched |= line->option ? (uint64_t)1 << (line->option - 1) : 0;
        if (line->option)
            buffer_format(&line->label, " (%zu run%s)", line->runs, line->runs == 1 ? "" : "s");
        if (!buffer_ok(&line->label))
            rc = error_memory(e, NULL, "for the names of %zu runs", w->count);
        p->labels[i] = buffer_text(&line->label);
    }
    for (size_t i = 0; i < w->groups.count && rc == OK; i++)
        if (!(matched >> i & 1))
            rc = error_set(e, ERR_ARG, "--group '%s': no run matches; 'eventlog inspect' lists the runs",
                           w->groups.items[i]);
    return rc;
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

static void setting(struct buffer *b, const char *text)
{
    buffer_append_text(b, b->length ? ", " : "");
    buffer_append_text(b, text);
}

static void range_setting(struct buffer *b, const char *what, const char *low, const char *high)
{
    buffer_format(b, "%s%s", b->length ? ", " : "", what);
    if (low)
        buffer_format(b, " from %s", low);
    if (high)
        buffer_format(b, " to %s", high);
}

/* Describes the chosen options, so that the picture explains itself. */
static void describe(struct curves_picture *p, const struct curves *w)
{
    char low[TIME_TEXT_MAX], high[TIME_TEXT_MAX];
    const struct point_range *r = &w->range;
    struct buffer *b = &p->settings;

    if (!strcmp(w->view, "tensorboard"))
        setting(b, "points as TensorBoard shows them");
    if (!strcmp(w->view, "session"))
        setting(b, "without what restarts made void");
    snprintf(low, sizeof low, "%lld", (long long)r->from_step);
    snprintf(high, sizeof high, "%lld", (long long)r->to_step);
    if (r->from_step != INT64_MIN || r->to_step != INT64_MAX)
        range_setting(b, "steps", r->from_step == INT64_MIN ? NULL : low, r->to_step == INT64_MAX ? NULL : high);
    if (r->since_text)
        range_setting(b, "points", time_text(TIME_SHORT, r->since, low), NULL);
    if (w->smoothing > 0)
        buffer_format(b, "%ssmoothing %.4g", b->length ? ", " : "", w->smoothing);
    if (w->groups.count || w->band)
        setting(b, p->band == CURVE_BAND_RANGE ? "mean, minimum and maximum of the runs of a group"
                                               : "mean and standard deviation of the runs of a group");
    if (w->log_y)
        setting(b, "logarithmic scale");
    snprintf(low, sizeof low, "%.6g", w->low);
    snprintf(high, sizeof high, "%.6g", w->high);
    if (!isnan(w->low) || !isnan(w->high))
        range_setting(b, "values", isnan(w->low) ? NULL : low, isnan(w->high) ? NULL : high);
    if (p->picture.clip == PICTURE_CLIP_ON)
        setting(b, "the axis without outliers");
    p->picture.settings = b->length ? buffer_text(b) : NULL;
}

/* ---- curves ---------------------------------------------------------------------------------------------------- */

static double origin_of(const struct curves_start *start, enum picture_axis axis)
{
    return axis == PICTURE_RELATIVE_STEP ? start->step : axis == PICTURE_RELATIVE ? start->wall_time : 0;
}

size_t curves_picture_points(const struct scalar_series *s, enum picture_axis axis, double origin,
                             struct picture_point *out)
{
    int steps = picture_axis_counts(axis);
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct eventlog_point *p = &s->points[i];

        if (steps && i + 1 < s->count && s->points[i + 1].step == p->step)
            continue;
        out[n].x = (steps ? (double)p->step : time_in_seconds(p->wall_time)) - origin;
        out[n++].y = p->value;
    }
    return n;
}

/* Smooths the points of a curve as if it were drawn by itself, and sorts them; returns how many can be placed. */
static size_t prepare_member(const struct curves_picture *p, struct picture_point *points, size_t count)
{
    struct picture_average average = { p->picture.smoothing, 0, 0 };
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        points[i].y = picture_smooth(&average, points[i].y);
        if (isfinite(points[i].x))
            points[n++] = points[i];
    }
    curve_group_sort(points, n);
    return n;
}

/* The runs of a line that have the tag as one curve. */
static int fill_line(struct curves_picture *p, const struct curves *w, struct picture_panel *panel,
                     const struct curves_tag *tag, size_t line, struct error *e)
{
    struct picture_curve *out = &p->curves[p->curve_count];
    struct curve_means means;
    size_t n = 0;
    int rc;

    for (size_t k = 0; k < w->count; k++) {
        const struct scalar_series *s = p->line_of[k] == line ? curves_series(w, k, tag) : NULL;
        struct picture_point *at = p->points + p->point_count;

        if (!s)
            continue;
        p->members[n] = (struct picture_curve){ .run = line, .points = at };
        p->members[n].count = curves_picture_points(s, panel->axis, origin_of(&w->starts[k], panel->axis), at);
        p->point_count += p->members[n].count;
        if (p->lines[line].option)
            p->members[n].count = prepare_member(p, at, p->members[n].count);
        n++;
    }
    if (!n)
        return OK;
    *out = p->members[0];
    p->curve_count++;
    panel->count++;
    if (!p->lines[line].option)
        return OK;
    means = (struct curve_means){ p->means + p->mean_count, p->lows + p->mean_count, p->highs + p->mean_count, 0 };
    rc = curve_group_means(p->members, n, p->band, &means, e);
    *out = (struct picture_curve){ line, means.mean, means.count, means.low, means.high };
    p->mean_count += means.count;
    return rc;
}

/* The panel of a tag: a curve for each line that has it. */
static int fill_panel(struct curves_picture *p, const struct curves *w, struct picture_panel *panel,
                      const struct curves_tag *tag, struct error *e)
{
    int rc = OK;

    panel->curves = p->curves + p->curve_count;
    panel->better = tag->better;
    for (size_t i = 0; i < p->line_count && rc == OK; i++)
        rc = fill_line(p, w, panel, tag, i, e);
    return rc;
}

static int allocate(struct curves_picture *p, const struct curves *w, size_t panels, size_t columns, struct error *e)
{
    size_t points = 1;

    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++)
            points += columns * w->runs[i].series[k].count;
    p->lines = calloc(w->count + 1, sizeof *p->lines);
    p->labels = calloc(w->count + 1, sizeof *p->labels);
    p->line_of = calloc(w->count + 1, sizeof *p->line_of);
    p->styles = calloc(w->count + 1, sizeof *p->styles);
    p->panels = calloc(panels + 1, sizeof *p->panels);
    p->curves = calloc(panels * w->count + 1, sizeof *p->curves);
    p->members = calloc(w->count + 1, sizeof *p->members);
    p->points = calloc(points, sizeof *p->points);
    if (w->groups.count || w->band) {
        p->means = calloc(points, sizeof *p->means);
        p->lows = calloc(points, sizeof *p->lows);
        p->highs = calloc(points, sizeof *p->highs);
        points = p->means && p->lows && p->highs ? points : 0;
    }
    if (!p->lines || !p->labels || !p->line_of || !p->styles || !p->panels || !p->curves || !p->members || !p->points ||
        !points)
        return error_memory(e, NULL, "for a picture");
    return OK;
}

static const char *name_of(const void *picture, size_t line)
{
    return ((const struct curves_picture *)picture)->lines[line].name;
}

int curves_picture_new(struct curves_picture *p, struct curves *w, size_t most, struct error *e)
{
    enum picture_axis axes[PICTURE_AXES], axis;
    const char *words = w->x;
    unsigned named = 0;
    size_t tags = w->tag_count < most ? w->tag_count : most, columns = 0, panels;
    int rc;

    for (; picture_axis_next(&words, &axis); named |= 1u << axis)
        if (!(named >> axis & 1))
            axes[columns++] = axis;
    panels = tags * columns;
    *p = (struct curves_picture){ .band = w->band && !strcmp(w->band, "min-max") ? CURVE_BAND_RANGE : 0 };
    if ((rc = allocate(p, w, panels, columns, e)) != OK || (rc = find_lines(p, w, e)) != OK)
        return rc;
    run_styles(name_of, p, p->line_count, p->styles);
    p->picture = (struct picture){ .runs = p->labels,
                                   .styles = p->styles,
                                   .run_count = p->line_count,
                                   .panels = p->panels,
                                   .panel_count = panels,
                                   .columns = columns > 1 ? columns : 0,
                                   .title = w->title,
                                   .smoothing = w->smoothing,
                                   .log_y = w->log_y,
                                   .low = w->low,
                                   .high = w->high };
    p->picture.clip = !strcmp(w->clip, "on") ? PICTURE_CLIP_ON : !strcmp(w->clip, "off") ? PICTURE_CLIP_OFF : 0;
    describe(p, w);
    for (size_t i = 0; i < panels; i++)
        p->panels[i] = (struct picture_panel){ .title = w->tags[i / columns].text,
                                               .title_length = w->tags[i / columns].length,
                                               .axis = axes[i % columns] };
    /* Panels over time take the points as they were written; then, if some panel runs over steps, they are sorted by
     * step. */
    for (int steps = 0; steps < 2 && rc == OK; steps++) {
        for (size_t i = 0; i < panels && rc == OK; i++)
            if (picture_axis_counts(p->panels[i].axis) == steps)
                rc = fill_panel(p, w, &p->panels[i], &w->tags[i / columns], e);
        if (!steps && rc == OK && (named >> PICTURE_STEP & 1 || named >> PICTURE_RELATIVE_STEP & 1))
            rc = curves_sort_by_step(w, e);
    }
    if (tags < w->tag_count)
        log_line(&w->scan->log, "%zu tags match; drew the first %zu; choose with --tag", w->tag_count, tags);
    return rc;
}

void curves_picture_release(struct curves_picture *p)
{
    for (size_t i = 0; p->lines && i <= p->line_count; i++) { /* an error may have ended one more */
        buffer_release(&p->lines[i].label);
        buffer_release(&p->lines[i].group);
    }
    free(p->lines);
    free(p->labels);
    free(p->styles);
    free(p->line_of);
    free(p->panels);
    free(p->curves);
    free(p->members);
    free(p->points);
    free(p->means);
    free(p->lows);
    free(p->highs);
    buffer_release(&p->settings);
}

int curves_picture_is(const char *format)
{
    return !strcmp(format, "svg") || !strcmp(format, "png");
}

int curves_picture_print(struct curves *w, const char *format, struct output *out, struct error *e)
{
    struct curves_picture p;
    struct buffer svg = BUFFER_EMPTY, png = BUFFER_EMPTY;
    const struct buffer *drawn = !strcmp(format, "png") ? &png : &svg;
    int rc = curves_picture_new(&p, w, CURVES_PANELS_MOST, e);

    if (rc == OK) {
        struct picture_size size = picture_svg_draw(&svg, &p.picture);

        if (!buffer_ok(&svg))
            rc = error_memory(e, NULL, "for a picture");
        else if (drawn == &png)
            rc = picture_png_draw(&png, &svg, size, PNG_SCALE, e);
        output_bytes(out, buffer_text(drawn), drawn->length);
    }
    buffer_release(&svg);
    buffer_release(&png);
    curves_picture_release(&p);
    return rc;
}
