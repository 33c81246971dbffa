#include "eventlog/tool/curves.h"

#include "base/bytes.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/picture_svg.h"
#include "eventlog/tool/tag_better.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name may have '=' in it: of several runs that fit, the one with the longest name is meant. */
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

int curves_read(struct curves *w, struct error *e)
{
    const struct log_directory *d = &w->scan->directory;

    w->runs = calloc(d->count + 1, sizeof *w->runs);
    w->names = calloc(d->count + 1, sizeof *w->names);
    w->labels = calloc(d->count + 1, sizeof *w->labels);
    if (!w->runs || !w->names || !w->labels)
        return error_set(e, ERR_NOMEM, "out of memory for %zu runs", d->count);
    for (size_t i = 0; i < d->count; i++) {
        struct scalar_run *r = &w->runs[w->count];
        int rc;

        if (!scan_run_wanted(w->scan, d->runs[i].name))
            continue;
        w->labels[w->count] = w->names[w->count] = d->runs[i].name;
        w->count++;
        scalar_run_init(r, scalar_view_of(w->view), 0, 1);
        rc = gather_run(w->scan, &d->runs[i], r, NULL, NULL, e);
        for (size_t k = 0; k < r->count; k++)
            gather_sift(&r->series[k], &w->range, 0);
        scalar_run_sort(r);
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

/* The tags to be shown: with --tag all that match, else those that all runs have, else all. */
int curves_choose_tags(struct curves *w, struct error *e)
{
    size_t n = 0, kept = 0, common = 0;

    for (size_t i = 0; i < w->count; i++)
        n += w->runs[i].count;
    if (!(w->tags = malloc((n + 1) * sizeof *w->tags)))
        return error_set(e, ERR_NOMEM, "out of memory for %zu tags", n);
    n = 0;
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++)
            if (scan_tag_wanted(w->scan, w->runs[i].series[k].tag) && w->runs[i].series[k].count)
                w->tags[n++] = (struct curves_tag){ w->runs[i].series[k].tag, w->runs[i].series[k].tag_length, 1, 0 };
    qsort(w->tags, n, sizeof *w->tags, by_text);
    for (size_t i = 0; i < n; i++)
        if (kept && !by_text(&w->tags[kept - 1], &w->tags[i]))
            w->tags[kept - 1].runs++;
        else
            w->tags[kept++] = w->tags[i];
    for (size_t i = 0; i < kept; i++)
        common += w->tags[i].runs == w->count;
    if (!w->scan->tags.patterns.count && common) {
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

const struct scalar_series *curves_series(const struct curves *w, size_t run, const struct curves_tag *tag)
{
    for (size_t i = 0; i < w->runs[run].count; i++) {
        const struct scalar_series *s = &w->runs[run].series[i];

        if (s->tag_length == tag->length && !memcmp(s->tag, tag->text, tag->length))
            return s->count ? s : NULL;
    }
    return NULL;
}

/* ---- as a picture ---------------------------------------------------------------------------------------------- */

static double first_wall_time(const struct scalar_run *r)
{
    double first = INFINITY;

    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->series[i].count; k++)
            first = fmin(first, r->series[i].points[k].wall_time);
    return first;
}

/* The curve of a series: of several points at one step the last counts. */
static size_t curve(const struct scalar_series *s, enum picture_axis axis, double start, struct picture_point *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct scalar_point *p = &s->points[i];

        if (axis == PICTURE_STEP && i + 1 < s->count && s->points[i + 1].step == p->step)
            continue;
        out[n].x = axis == PICTURE_STEP ? (double)p->step : p->wall_time - (axis == PICTURE_WALL ? 0 : start);
        out[n++].y = p->value;
    }
    return n;
}

/* The panel of a tag: a curve for each run that has the tag. */
static void fill_panel(struct curves_picture *p, const struct curves *w, struct picture_panel *panel,
                       const struct curves_tag *tag)
{
    struct picture_curve *curves = p->curves + p->curve_count;

    panel->curves = curves;
    panel->better = tag->better;
    for (size_t k = 0; k < w->count; k++) {
        const struct scalar_series *s = curves_series(w, k, tag);
        struct picture_point *at = p->points + p->point_count;

        if (!s)
            continue;
        curves[panel->count] = (struct picture_curve){ k, at, curve(s, panel->axis, p->starts[k], at) };
        p->point_count += curves[panel->count++].count;
    }
    p->curve_count += panel->count;
}

int curves_picture_new(struct curves_picture *p, struct curves *w, size_t most, struct error *e)
{
    enum picture_axis axes[PICTURE_RELATIVE + 1], axis;
    const char *words = w->x;
    unsigned named = 0;
    size_t points = 0, tags = w->tag_count < most ? w->tag_count : most, columns = 0, panels;
    int rc = OK;

    for (; picture_axis_next(&words, &axis); named |= 1u << axis)
        if (!(named >> axis & 1))
            axes[columns++] = axis;
    panels = tags * columns;
    *p = (struct curves_picture){ .panels = calloc(panels + 1, sizeof *p->panels) };
    p->curves = calloc(panels * w->count + 1, sizeof *p->curves);
    p->starts = calloc(w->count + 1, sizeof *p->starts);
    p->picture = (struct picture){ .runs = w->labels, .run_count = w->count, .panels = p->panels,
                                   .panel_count = panels, .columns = columns > 1 ? columns : 0, .title = w->title,
                                   .smoothing = w->smoothing, .log_y = w->log_y, .low = NAN, .high = NAN };
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++)
            points += w->runs[i].series[k].count;
    p->points = calloc(points * columns + 1, sizeof *p->points);
    if (!p->panels || !p->curves || !p->starts || !p->points)
        return error_set(e, ERR_NOMEM, "out of memory for a picture of %zu points", points);
    for (size_t i = 0; i < w->count; i++)
        p->starts[i] = first_wall_time(&w->runs[i]);
    for (size_t i = 0; i < panels; i++)
        p->panels[i] = (struct picture_panel){ .title = w->tags[i / columns].text,
                                               .title_length = w->tags[i / columns].length,
                                               .axis = axes[i % columns] };
    /* Over time the points stand as they were written; then, if some panel is to run over steps, by step. */
    for (int steps = 0; steps < 2 && rc == OK; steps++) {
        for (size_t i = 0; i < panels; i++)
            if ((p->panels[i].axis == PICTURE_STEP) == steps)
                fill_panel(p, w, &p->panels[i], &w->tags[i / columns]);
        if (!steps && named >> PICTURE_STEP & 1)
            rc = curves_sort_by_step(w, e);
    }
    if (tags < w->tag_count)
        log_line(&w->scan->log, "%zu tags, the first %zu are drawn; --tag chooses", w->tag_count, tags);
    return rc;
}

void curves_picture_release(struct curves_picture *p)
{
    free(p->panels);
    free(p->curves);
    free(p->starts);
    free(p->points);
}

int curves_print_svg(struct curves *w, struct output *out, struct error *e)
{
    struct curves_picture p;
    struct buffer b = BUFFER_EMPTY;
    int rc = curves_picture_new(&p, w, CURVES_PANELS_MOST, e);

    if (rc == OK) {
        picture_svg_draw(&b, &p.picture);
        if (!buffer_ok(&b))
            rc = error_set(e, ERR_NOMEM, "out of memory for a picture");
        output_bytes(out, buffer_text(&b), b.length);
    }
    buffer_release(&b);
    curves_picture_release(&p);
    return rc;
}

void curves_release(struct curves *w)
{
    for (size_t i = 0; i < w->count; i++)
        scalar_run_release(&w->runs[i]);
    free(w->runs);
    free(w->names);
    free(w->labels);
    free(w->tags);
    selection_release(&w->lower);
    selection_release(&w->higher);
}
