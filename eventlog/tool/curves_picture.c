#include "eventlog/tool/curves_picture.h"

#include "eventlog/tool/picture_svg.h"

#include <math.h>
#include <stdlib.h>

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
