/* eventlog plot: draws curves in the terminal, or as a picture. */
#include "base/json.h"
#include "base/program/terminal.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/picture/chart.h"
#include "eventlog/tool/picture/curves_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAGS_MOST = 12, COLUMNS = 80, ROWS = 16 };

struct plot {
    struct scan scan;
    struct curves curves;
    struct output_options to;
    const char *color;
    int64_t width, height;
    int ascii;
};

/* A file is drawn as for a terminal of 80 columns without colours. */
static struct chart chart_of(const struct plot *p)
{
    int columns = p->width ? (int)p->width : p->to.path ? 0 : terminal_columns(STDOUT_FILENO);

    return (struct chart){
        .columns = columns ? columns : COLUMNS,
        .rows = (int)p->height,
        .ascii = p->ascii || (!p->to.path && !terminal_utf8()),
        .colour = terminal_coloured(STDOUT_FILENO, p->to.path && !strcmp(p->color, "auto") ? "never" : p->color),
    };
}

/* [x,y], for a band also its edges. */
static void print_point(struct buffer *b, enum picture_axis axis, const struct picture_curve *c, size_t at, double y)
{
    if (picture_axis_counts(axis))
        buffer_format(b, "[%.0f", c->points[at].x);
    else {
        buffer_append_byte(b, '[');
        json_double(b, c->points[at].x);
    }
    buffer_append_byte(b, ',');
    json_double(b, y);
    if (c->low) {
        buffer_append_byte(b, ',');
        json_double(b, c->low[at].y);
        buffer_append_byte(b, ',');
        json_double(b, c->high[at].y);
    }
    buffer_append_byte(b, ']');
}

/* For a mean: its runs, and what its band is. */
static void print_group(struct buffer *b, const struct curves *w, const struct curves_picture *drawn,
                        const struct picture_curve *c)
{
    const char *before = ",\"runs\":[";

    for (size_t i = 0; c->low && i < w->count; i++)
        if (drawn->line_of[i] == c->run) {
            buffer_append_text(b, before);
            json_text(b, w->names[i]);
            before = ",";
        }
    if (c->low)
        buffer_format(b, "],\"band\":\"%s\"", drawn->band == CURVE_BAND_RANGE ? "min-max" : "deviation");
}

/* The curves as they are drawn: smoothed values, every point. */
static void print_json(const struct curves *w, const struct curves_picture *drawn, struct output *out)
{
    const struct picture *p = &drawn->picture;
    struct buffer b = BUFFER_EMPTY;

    buffer_format(&b, "{\"type\":\"plot\",\"version\":1,\"x\":\"%s\",\"smoothing\":", w->x);
    json_double(&b, p->smoothing);
    buffer_append_text(&b, ",\"curves\":[");
    for (size_t i = 0, first = 1; i < p->panel_count; i++)
        for (size_t k = 0; k < p->panels[i].count; k++, first = 0) {
            const struct picture_curve *c = &p->panels[i].curves[k];
            struct picture_average average = { picture_smoothing_of(p, c), 0, 0 };

            buffer_append_text(&b, first ? "\n{\"run\":" : ",\n{\"run\":");
            json_text(&b, drawn->lines[c->run].name);
            buffer_append_text(&b, ",\"tag\":");
            json_span(&b, p->panels[i].title, p->panels[i].title_length, 0);
            print_group(&b, w, drawn, c);
            buffer_format(&b, ",\"x\":\"%s\",\"points\":[", picture_axis_word(p->panels[i].axis));
            for (size_t n = 0; n < c->count; n++) {
                buffer_append_text(&b, n ? "," : "");
                print_point(&b, p->panels[i].axis, c, n, picture_smooth(&average, c->points[n].y));
            }
            buffer_append_text(&b, "]}");
            output_bytes(out, buffer_text(&b), b.length);
            buffer_clear(&b);
        }
    buffer_append_text(&b, "]}\n");
    output_bytes(out, buffer_text(&b), b.length);
    buffer_release(&b);
}

static int print_text(struct plot *p, struct output *out, struct error *e)
{
    struct chart chart = chart_of(p);
    struct curves_picture picture;
    struct buffer b = BUFFER_EMPTY;
    int json = !strcmp(p->to.format, "json");
    int rc = curves_picture_new(&picture, &p->curves, json ? SIZE_MAX : TAGS_MOST, e);

    if (rc == OK && json)
        print_json(&p->curves, &picture, out);
    else if (rc == OK)
        chart_draw(&b, &picture.picture, &chart);
    if (rc == OK && !buffer_ok(&b))
        rc = error_memory(e, NULL, "for a chart");
    output_colours(out);
    output_bytes(out, buffer_text(&b), b.length);
    buffer_release(&b);
    curves_picture_release(&picture);
    return rc;
}

static int plot(struct plot *p, struct error *e)
{
    struct output *out;
    int rc = curves_read(&p->curves, e);

    if (rc == OK)
        rc = curves_choose_tags(&p->curves, e);
    if (rc == OK && !p->curves.tag_count && strcmp(p->to.format, "json") != 0)
        return OK; /* nothing to draw */
    if (rc != OK || (rc = output_open(&out, p->to.path, p->to.force, e)) != OK)
        return rc;
    if (curves_picture_is(p->to.format))
        rc = curves_picture_print(&p->curves, p->to.format, out, e);
    else
        rc = print_text(p, out, e);
    if (rc != OK) {
        output_close(out, 0, NULL);
        return rc;
    }
    return output_close(out, 1, e);
}

int command_plot(int argc, char **argv)
{
    static const struct output_format formats[] = {
        { "text", "txt", 0 }, { "json", "json", 0 }, { "svg", "svg", 0 }, { "png", "png", 1 }
    };
    struct plot p = { .curves = { CURVES_DEFAULTS }, .color = "auto", .height = ROWS };
    struct option table[] = {
        { OPTION_LIST, 't', "tag", &p.scan.tags, "GLOB",
          .help = "Draw the tags that match GLOB, a chart each; may be repeated (default: those that all runs have)" },
        SCAN_RUN_OPTION(p.scan),
        CURVES_OPTIONS(p.curves),
        { OPTION_INT, 0, "width", &p.width, .argument = "N",
          .help = "Make charts N characters wide (default: COLUMNS, else as wide as the terminal, else 80)",
          .minimum = CHART_COLUMNS_LEAST, .maximum = CHART_COLUMNS_MOST },
        { OPTION_INT, 0, "height", &p.height, .argument = "N",
          .help = "Make the plot of each chart N rows high (default 16)", .minimum = CHART_ROWS_LEAST,
          .maximum = CHART_ROWS_MOST },
        { OPTION_FLAG, 0, "ascii", &p.ascii,
          .help = "Draw with ASCII characters only (default where the locale is not UTF-8)" },
        { OPTION_CHOICE, 0, "color", &p.color,
          .help = "Use colours; auto: on a terminal, unless NO_COLOR is set (default auto)",
          .choices = "auto|always|never" },
        OUTPUT_OPTIONS(p.to, "text|json|svg|png", "text",
                       "Draw in the terminal, print the points of the curves, smoothed, as JSON, or draw a picture as "
                       "'eventlog compare' does"),
    };
    const struct options options = {
        .program = "eventlog plot",
        .usage = "[OPTION...] PATH...",
        .summary = "Draw scalar series in the terminal or as a picture: a chart for each tag, a curve for each run, "
                   "and below it the final and the best values. Points that are NaN, infinite or off the axis are "
                   "marked. If several points share a step, the last one counts. Exit status: 0 done; 1 nothing to "
                   "draw, or damage; 2 usage or I/O.",
        .examples = "  eventlog plot logs --tag loss --smoothing 0.6\n"
                    "  watch -c eventlog plot --color always logs/train\n"
                    "  eventlog plot logs --x relative --log-y -o loss.svg\n"
                    "  eventlog plot logs --tag loss --group 'seed-*' -o seeds.png\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&p.scan, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = output_format_settle(&p.to, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc == OK)
        rc = curves_settle(&p.curves, &e);
    if (rc != OK)
        return scan_leave(&p.scan, rc, &e);
    p.curves.scan = &p.scan;
    if ((status = scan_open(&p.scan, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    rc = plot(&p, &e);
    status = rc == OK ? scan_status(&p.scan, p.curves.tag_count > 0) : scan_fail(&p.scan, &e);
    curves_release(&p.curves);
    scan_close(&p.scan);
    return status;
}
