#include "eventlog/tool/picture_svg.h"

#include "base/bytes.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Sizes in the units of the picture. A panel is title, plot, axis, then a line of text for each run. */
enum {
    PANEL_WIDTH = 560, PLOT_HEIGHT = 240, LEFT = 62, RIGHT = 20, TITLE = 38, AXIS = 46, ROW = 18, MARGIN = 24, GAP = 28,
    HEADING = 34, LEGEND = 40, ROWS_MOST = 8, COLOURS = 8, TICKS = 6, TICKS_MOST = 20,
};

/* Okabe and Ito's colours for all kinds of sight, in an order that keeps neighbours apart, darkened where they were too
 * pale for a white ground; beside them the lighter ones for a dark ground. */
static const struct { const char *light, *dark, *dash; } styles[COLOURS] = {
    { "#0072b2", "#56b4e9", "" },           { "#d55e00", "#ff8c42", "8 4" },
    { "#009e73", "#2fd0a2", "2.5 3.5" },    { "#b04a86", "#e79ac4", "10 3 2.5 3" },
    { "#a87400", "#f0b429", "14 4" },       { "#3a86b8", "#9ad5f5", "5 3" },
    { "#5b5bd6", "#a3a3ff", "10 3 2.5 3 2.5 3" }, { "#444444", "#dddddd", "1.5 2.5" },
};

struct frame { /* of one plot: where it stands and what it spans */
    double left, top, width, height, x0, x1, y0, y1; /* y as picture_scale() has it */
};

/* ---- text ------------------------------------------------------------------------------------------------------ */

/* XML text; what XML cannot hold becomes U+FFFD. */
static void escape(struct buffer *b, const char *text, size_t n)
{
    while (n) {
        uint32_t c = 0;
        int length = utf8_character(text, n, &c);

        if (!length || c < 0x20 || c == 0x7f || c == 0xfffe || c == 0xffff)
            buffer_append_text(b, "\xef\xbf\xbd");
        else if (c == '<')
            buffer_append_text(b, "&lt;");
        else if (c == '>')
            buffer_append_text(b, "&gt;");
        else if (c == '&')
            buffer_append_text(b, "&amp;");
        else if (c == '"')
            buffer_append_text(b, "&quot;");
        else
            buffer_append(b, text, (size_t)length);
        text += length ? length : 1;
        n -= length ? (size_t)length : 1;
    }
}

/* ---- scales ---------------------------------------------------------------------------------------------------- */

static double place_x(const struct frame *f, double x)
{
    return f->left + (x - f->x0) / (f->x1 - f->x0) * f->width;
}

static double place_y(const struct frame *f, double y)
{
    return f->top + f->height - (y - f->y0) / (f->y1 - f->y0) * f->height;
}

/* What the finite points span, with some air above and below. */
static void span(const struct picture *p, const struct picture_panel *panel, struct frame *f)
{
    int any = 0;
    double air;

    f->x0 = f->y0 = 0;
    f->x1 = f->y1 = 1;
    for (size_t i = 0; i < panel->count; i++)
        for (size_t k = 0; k < panel->curves[i].count; k++) {
            struct picture_point q = panel->curves[i].points[k];

            q.y = picture_scale(p, q.y);
            if (!picture_placeable(q.x, q.y))
                continue;
            if (!any++) {
                f->x0 = f->x1 = q.x;
                f->y0 = f->y1 = q.y;
            }
            f->x0 = fmin(f->x0, q.x);
            f->x1 = fmax(f->x1, q.x);
            f->y0 = fmin(f->y0, q.y);
            f->y1 = fmax(f->y1, q.y);
        }
    air = fmax(0.5, fabs(f->x1) * 1e-9);
    if (!(f->x1 - f->x0 > fabs(f->x1) * 1e-12)) { /* one step, or steps that doubles hardly tell apart */
        f->x0 -= air;
        f->x1 = f->x0 + 2 * air;
    }
    air = f->y1 - f->y0 > fabs(f->y1) * 1e-9 ? (f->y1 - f->y0) * 0.06 : fabs(f->y1) * 0.1 + 1e-30;
    /* A quantity that never was negative does not look as if it could be. */
    f->y0 = !p->log_y && f->y0 >= 0 && f->y0 - air < 0 ? 0 : f->y0 - air;
    f->y1 += air;
}

/* ---- drawing --------------------------------------------------------------------------------------------------- */

static void draw_axes(struct buffer *b, const struct picture *p, enum picture_axis axis, const struct frame *f)
{
    static const char *const names[] = { "step", "time (UTC)", "time since the run's first point" };
    double step = picture_tick_step(f->y1 - f->y0, TICKS, 0);
    char text[64];

    if (p->log_y && f->y1 - f->y0 > 2 && step < 1) /* powers of ten where there are some */
        step = 1;

    for (int i = 0; i < TICKS_MOST; i++) {
        double at = (ceil(f->y0 / step) + i) * step, y = place_y(f, at);

        if (!(at <= f->y1))
            break;
        if (p->log_y)
            snprintf(text, sizeof text, "%.3g", pow(10, at));
        else
            snprintf(text, sizeof text, "%.6g", at == 0 ? 0 : at);
        buffer_format(b, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                      "text-anchor=\"end\">%s</text>\n", f->left, y, f->left + f->width, f->left - 8, y + 4, text);
    }
    step = picture_tick_step(f->x1 - f->x0, TICKS, axis != PICTURE_STEP);
    if (axis == PICTURE_STEP && step < 1)
        step = 1;
    for (int i = 0; i < TICKS_MOST; i++) {
        double at = (ceil(f->x0 / step) + i) * step, x = place_x(f, at);

        if (!(at <= f->x1))
            break;
        picture_axis_text(axis, at, f->x1 - f->x0, text, sizeof text);
        buffer_format(b, "<path class=\"axis\" d=\"M%.1f %.1fv5\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                      "text-anchor=\"middle\">%s</text>\n", x, f->top + f->height, x, f->top + f->height + 18, text);
    }
    buffer_format(b, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", f->left, f->top, f->top + f->height,
                  f->left + f->width);
    buffer_format(b, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                  f->left + f->width / 2, f->top + f->height + 34, names[axis]);
}

/* A long curve has many points in one column of the screen: of those, the first, lowest, highest and last are drawn,
 * which looks the same. */
struct pen {
    struct buffer *out;
    const struct frame *frame;
    int down;          /* a line is begun */
    long column;       /* of what is gathered; -1: nothing */
    double x[4], y[4]; /* first, lowest, highest, last */
};

static void pen_point(struct pen *pen, double x, double y)
{
    buffer_format(pen->out, "%c%.1f %.1f", pen->down ? 'L' : 'M', place_x(pen->frame, x), place_y(pen->frame, y));
    pen->down = 1;
}

static void pen_flush(struct pen *pen)
{
    int low_first = pen->x[1] <= pen->x[2], one = pen->x[0] == pen->x[3] && pen->y[1] == pen->y[2];

    if (pen->column < 0)
        return;
    pen_point(pen, pen->x[0], pen->y[0]);
    if (!one) {
        int a = low_first ? 1 : 2, c = low_first ? 2 : 1;

        if (pen->y[a] != pen->y[0])
            pen_point(pen, pen->x[a], pen->y[a]);
        if (pen->y[c] != pen->y[3] && pen->y[c] != pen->y[0])
            pen_point(pen, pen->x[c], pen->y[c]);
        pen_point(pen, pen->x[3], pen->y[3]);
    }
    pen->column = -1;
}

static void pen_to(struct pen *pen, double x, double y)
{
    long column;

    if (!picture_placeable(x, y)) {
        pen_flush(pen);
        pen->down = 0;
        return;
    }
    column = (long)(place_x(pen->frame, x) * 2);
    if (column != pen->column) {
        pen_flush(pen);
        pen->column = column;
        for (int i = 0; i < 4; i++) {
            pen->x[i] = x;
            pen->y[i] = y;
        }
        return;
    }
    for (int i = 1; i < 4; i++)
        if (i == 3 || (i == 1 ? y < pen->y[1] : y > pen->y[2])) {
            pen->x[i] = x;
            pen->y[i] = y;
        }
}

static void draw_line(struct buffer *b, const struct picture *p, const struct frame *f, const struct picture_curve *c,
                      double smoothing, const char *class)
{
    struct pen pen = { .out = b, .frame = f, .column = -1 };
    struct picture_average average = { smoothing, 0, 0 };

    buffer_format(b, "<path class=\"%s c%zu\" d=\"", class, c->run % COLOURS);
    for (size_t i = 0; i < c->count; i++)
        pen_to(&pen, c->points[i].x, picture_scale(p, picture_smooth(&average, c->points[i].y)));
    pen_flush(&pen);
    buffer_append_text(b, "\"/>\n");
}

/* The end of a curve is a dot, its best value a ring; hovering tells the numbers. */
static void draw_marks(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                       const struct frame *f, const struct picture_curve *c)
{
    struct picture_summary s = picture_summary_of(c, panel->lower_is_better);
    const struct picture_point *points[2] = { s.best, s.last };

    for (int i = 0; i < 2 && s.last; i++) {
        double y = picture_scale(p, points[i]->y);
        char at[64];

        if (isnan(y))
            continue;
        picture_axis_text(panel->axis, points[i]->x, f->x1 - f->x0, at, sizeof at);
        buffer_format(b, "<circle class=\"%s c%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>", i ? "last" : "best",
                      c->run % COLOURS, place_x(f, points[i]->x), place_y(f, y), i ? "3.2" : "5.5");
        escape(b, p->runs[c->run], strlen(p->runs[c->run]));
        buffer_format(b, ": %s %.6g at %s</title></circle>\n", i ? "final" : "best", points[i]->y, at);
    }
}

/* Under the plot: run, final and best value, so that the picture can be read without a ruler. */
static void draw_rows(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                      const struct frame *f)
{
    double y = f->top + f->height + AXIS + 12;

    for (size_t i = 0; i < panel->count && i < ROWS_MOST; i++, y += ROW) {
        const struct picture_curve *c = &panel->curves[i];
        struct picture_summary s = picture_summary_of(c, panel->lower_is_better);
        char at[64];

        buffer_format(b, "<path class=\"line c%zu\" d=\"M%.1f %.1fh26\"/><text class=\"row\" x=\"%.1f\" y=\"%.1f\">",
                      c->run % COLOURS, f->left, y - 4, f->left + 34, y);
        escape(b, p->runs[c->run], strlen(p->runs[c->run]));
        buffer_append_text(b, "</text>");
        if (s.last) {
            picture_axis_text(panel->axis, s.best->x, f->x1 - f->x0, at, sizeof at);
            buffer_format(b, "<text class=\"row\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">final "
                          "<tspan class=\"b\">%.5g</tspan></text>", f->left + f->width - 190, y, s.last->y);
            buffer_format(b, "<text class=\"row\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">best "
                          "<tspan class=\"b\">%.5g</tspan> at %s</text>", f->left + f->width, y, s.best->y, at);
        } else {
            buffer_format(b, "<text class=\"row\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">no finite value</text>",
                          f->left + f->width, y);
        }
        buffer_append_text(b, "\n");
    }
}

static void draw_panel(struct buffer *b, const struct picture *p, const struct picture_panel *panel, double left,
                       double top)
{
    struct frame f = { left + LEFT, top + TITLE, PANEL_WIDTH - LEFT - RIGHT, PLOT_HEIGHT, 0, 1, 0, 1 };

    span(p, panel, &f);
    buffer_format(b, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">", f.left, top + 22);
    escape(b, panel->title, panel->title_length);
    buffer_append_text(b, "</text>\n");
    draw_axes(b, p, panel->axis, &f);
    for (size_t i = 0; i < panel->count; i++) {
        if (p->smoothing > 0)
            draw_line(b, p, &f, &panel->curves[i], 0, "faint");
        draw_line(b, p, &f, &panel->curves[i], p->smoothing, "line");
    }
    for (size_t i = 0; i < panel->count; i++)
        draw_marks(b, p, panel, &f, &panel->curves[i]);
    draw_rows(b, p, panel, &f);
}

static void draw_style(struct buffer *b)
{
    buffer_append_text(b,
        "<style>\n"
        "svg{background:#fff}text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}\n"
        ".ground{fill:#fff}.heading{font-size:19px;font-weight:600}.title{font-size:16px;font-weight:600}\n"
        ".tick{font-size:11.5px;fill:#57606a}.row{font-size:12.5px}.b{font-weight:600}\n"
        ".grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#8c959f;stroke-width:1;fill:none}\n"
        ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
        ".faint{fill:none;stroke-width:1;stroke-dasharray:none!important;opacity:.3}\n"
        ".best{fill:none;stroke-width:1.6;stroke-dasharray:none!important}"
        ".last{stroke:none;stroke-dasharray:none!important}\n");
    for (int i = 0; i < COLOURS; i++)
        buffer_format(b, ".c%d{stroke:%s%s%s}.last.c%d{fill:%s;stroke:none}\n", i, styles[i].light,
                      *styles[i].dash ? ";stroke-dasharray:" : "", styles[i].dash, i, styles[i].light);
    buffer_append_text(b, "@media(prefers-color-scheme:dark){\n"
                          "svg{background:#0d1117}.ground{fill:#0d1117}text{fill:#e6edf3}.tick{fill:#9198a1}"
                          ".grid{stroke:#262c36}.axis{stroke:#6e7681}\n");
    for (int i = 0; i < COLOURS; i++)
        buffer_format(b, ".c%d{stroke:%s}.last.c%d{fill:%s;stroke:none}\n", i, styles[i].dark, i, styles[i].dark);
    buffer_append_text(b, "}\n</style>\n");
}

/* The legend's entries in lines; returns how many lines. With b NULL only counts. */
static int draw_legend(struct buffer *b, const struct picture *p, double top, double width)
{
    double x = MARGIN + LEFT, y = top + 12;
    int lines = 1;

    for (size_t i = 0; i < p->run_count; i++) {
        size_t n = strlen(p->runs[i]);
        double wide = 34 + 7.4 * (double)n + 28;

        if (x > MARGIN + LEFT && x + wide > width - MARGIN) {
            x = MARGIN + LEFT;
            y += 22;
            lines++;
        }
        if (b) {
            buffer_format(b, "<path class=\"line c%zu\" d=\"M%.1f %.1fh28\"/><text x=\"%.1f\" y=\"%.1f\">",
                          i % COLOURS, x, y - 4, x + 36, y);
            escape(b, p->runs[i], n);
            buffer_append_text(b, "</text>\n");
        }
        x += wide;
    }
    return lines;
}

void picture_svg_draw(struct buffer *b, const struct picture *p)
{
    size_t usual = p->panel_count <= 1 ? 1 : p->panel_count == 2 || p->panel_count == 4 ? 2 : 3;
    size_t columns = p->columns ? p->columns : usual;
    size_t lines = (p->panel_count + columns - 1) / columns, rows = 0;
    double panel_height, width, height, top, heading = MARGIN + (p->title ? HEADING : 0);

    for (size_t i = 0; i < p->panel_count; i++)
        rows = p->panels[i].count > rows ? p->panels[i].count : rows;
    rows = rows > ROWS_MOST ? ROWS_MOST : rows;
    panel_height = TITLE + PLOT_HEIGHT + AXIS + (double)rows * ROW;
    width = 2 * MARGIN + (double)columns * PANEL_WIDTH + (double)(columns - 1) * GAP;
    top = heading + LEGEND + 22 * (draw_legend(NULL, p, heading, width) - 1);
    height = top + (double)lines * panel_height + (double)(lines ? lines - 1 : 0) * GAP + MARGIN;
    buffer_format(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>", width, height, width, height);
    for (size_t i = 0; i < p->run_count; i++) {
        buffer_append_text(b, i ? ", " : "");
        escape(b, p->runs[i], strlen(p->runs[i]));
    }
    buffer_append_text(b, "</title>\n");
    draw_style(b);
    buffer_format(b, "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
    if (p->title) {
        buffer_format(b, "<text class=\"heading\" x=\"%d\" y=\"%d\">", MARGIN + LEFT, MARGIN + 16);
        escape(b, p->title, strlen(p->title));
        buffer_append_text(b, "</text>\n");
    }
    draw_legend(b, p, heading, width);
    for (size_t i = 0; i < p->panel_count; i++)
        draw_panel(b, p, &p->panels[i], MARGIN + (double)(i % columns) * (PANEL_WIDTH + GAP),
                   top + (double)(i / columns) * (panel_height + GAP));
    buffer_append_text(b, "</svg>\n");
}
