#include "eventlog/tool/picture/picture_svg.h"

#include "base/bytes.h"
#include "base/human.h"
#include "base/text.h"
#include "eventlog/tool/picture/picture_range.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- picture svg curve ------------------------------------------------------------------------------------------- */

enum { COLUMNS = 1120 }; /* of a band, more than any plot has */

struct pen {
    struct buffer *out;
    const struct picture_svg_plot *plot;
    int points;              /* of the line so far */
    struct picture_point at; /* the last of them */
    long column;             /* of the points gathered; -1: none */
    double x[4], y[4];       /* first, lowest, highest, last */
};

static int inside(const struct picture_svg_plot *f, double y)
{
    return y >= f->range.y0 && y <= f->range.y1;
}

static void pen_move(struct pen *pen, char how, struct picture_point to)
{
    buffer_format(pen->out, "%c%.1f %.1f", how, picture_svg_x(pen->plot, to.x), picture_svg_y(pen->plot, to.y));
}

static void pen_point(struct pen *pen, double x, double y)
{
    struct picture_point from = pen->at, to = { x, y };

    if (!pen->points++) {
        if (inside(pen->plot, y))
            pen_move(pen, 'M', to);
    } else if (picture_clip(pen->plot->range.y0, pen->plot->range.y1, &from, &to)) {
        if (!inside(pen->plot, pen->at.y))
            pen_move(pen, 'M', from);
        pen_move(pen, 'L', to);
    }
    pen->at = (struct picture_point){ x, y };
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

static void pen_up(struct pen *pen)
{
    pen_flush(pen);
    if (pen->points == 1 && inside(pen->plot, pen->at.y)) /* a line of one point is invisible */
        buffer_append_text(pen->out, "m-1 0h2");
    pen->points = 0;
}

static void pen_to(struct pen *pen, double x, double y)
{
    long column = (long)(picture_svg_x(pen->plot, x) * 2);

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

void picture_svg_line(struct buffer *b, const struct picture *p, const struct picture_svg_plot *f,
                      const struct picture_curve *c, double smoothing, const char *class)
{
    struct picture_walk walk = picture_walk_begin(p, c, smoothing, f->range.y0, f->range.y1);
    struct pen pen = { .out = b, .plot = f, .column = -1 };
    struct picture_point q;
    enum picture_mark mark;

    buffer_format(b, "<path class=\"%s c%zu d%zu\" d=\"", class, picture_svg_colour(p, c->run),
                  picture_svg_dash(p, c->run));
    while (picture_walk_next(&walk, &q, &mark))
        if (picture_draws_line(mark))
            pen_to(&pen, q.x, q.y);
        else
            pen_up(&pen);
    pen_up(&pen);
    buffer_append_text(b, "\"/>\n");
}

/* The part of a band within one column of the screen. */
struct band_column {
    double x, low, high; /* in units of the picture, y from above: low is the larger */
};

static void draw_band_piece(struct buffer *b, size_t colour, const struct band_column *columns, size_t n)
{
    if (!n)
        return;
    buffer_format(b, "<path class=\"f band c%zu\" d=\"", colour);
    for (size_t i = 0; i < n; i++)
        buffer_format(b, "%c%.1f %.1f", i ? 'L' : 'M', columns[i].x, columns[i].high);
    for (size_t i = n; i-- > 0;)
        buffer_format(b, "L%.1f %.1f", columns[i].x, columns[i].low);
    buffer_append_text(b, "z\"/>\n");
}

void picture_svg_band(struct buffer *b, const struct picture *p, const struct picture_svg_plot *f,
                      const struct picture_curve *c)
{
    struct picture_curve low = { .points = c->low, .count = c->count }, high = { .points = c->high, .count = c->count };
    struct picture_walk below = picture_walk_begin(p, &low, 0, f->range.y0, f->range.y1);
    struct picture_walk above = picture_walk_begin(p, &high, 0, f->range.y0, f->range.y1);
    struct band_column columns[COLUMNS];
    struct picture_point l, h;
    enum picture_mark l_mark, h_mark;
    size_t n = 0;

    while (picture_walk_next(&below, &l, &l_mark) && picture_walk_next(&above, &h, &h_mark)) {
        double x = picture_svg_x(f, h.x), bottom = f->top + f->height;
        if (!picture_draws_line(h_mark) || !(picture_draws_line(l_mark) || l_mark == PICTURE_GAP)) {
            draw_band_piece(b, picture_svg_colour(p, c->run), columns, n);
            n = 0;
            continue;
        }
        /* On a logarithmic scale the lower edge may be below 0. */
        l.y = l_mark == PICTURE_GAP ? bottom : fmin(bottom, fmax(f->top, picture_svg_y(f, l.y)));
        h.y = fmin(bottom, fmax(f->top, picture_svg_y(f, h.y)));
        if (n && (x - columns[n - 1].x < 0.5 || n == sizeof columns / sizeof *columns)) {
            columns[n - 1].low = fmax(columns[n - 1].low, l.y);
            columns[n - 1].high = fmin(columns[n - 1].high, h.y);
        } else {
            columns[n++] = (struct band_column){ x, l.y, h.y };
        }
    }
    draw_band_piece(b, picture_svg_colour(p, c->run), columns, n);
}

/* ---- picture svg ------------------------------------------------------------------------------------------------- */

/* Sizes in the units of the picture. A panel is title, plot, axis, then a line of text for each run. */
/* clang-format off */
enum {
    PANEL_WIDTH = 560, PLOT_HEIGHT = 240, LEFT = 62, RIGHT = 20, TITLE = 38, AXIS = 46, ROW = 18, MARGIN = 24, GAP = 28,
    HEADING = 34, SETTINGS = 18, LEGEND = 30, LEGEND_ROW = 22, ROWS_MOST = 64, TICKS = 6, LETTER = 11,
    SAMPLE_WIDTH = 28, FIGURE = 74,
};
/* clang-format on */
static const double AIR = 0.06, CHARACTER = 7.3 /* of the font, at most on average */;

/* Okabe and Ito's colours for all kinds of colour vision, in an order that keeps neighbours distinct, darkened where
 * they were too pale for a white background; beside them lighter ones for a dark background. */
/* clang-format off */
static const struct { const char *light, *dark, *dash; } styles[RUN_COLOURS] = {
    { "#0072b2", "#56b4e9", "" },           { "#d55e00", "#ff8c42", "8 4" },
    { "#009e73", "#2fd0a2", "2.5 3.5" },    { "#b04a86", "#e79ac4", "10 3 2.5 3" },
    { "#a87400", "#f0b429", "14 4" },       { "#3a86b8", "#9ad5f5", "5 3" },
    { "#5b5bd6", "#a3a3ff", "10 3 2.5 3 2.5 3" }, { "#444444", "#dddddd", "1.5 2.5" },
};
/* clang-format on */

/* The paths of the marks, relative to their place; class "f": filled. */
static const struct {
    const char *class, *path, *meaning;
} marks[PICTURE_MARKS] = {
    [PICTURE_NAN] = { "f nan", "m-5.5 4.5h11l-5.5 -9.5z", "not a number" },
    [PICTURE_PLUS] = { "plus", "m-5 10h10l-5 -8.5z", "+inf" },
    [PICTURE_MINUS] = { "minus", "m-5 -10h10l-5 8.5z", "-inf" },
    [PICTURE_ABOVE] = { "above", "m-4.5 5.5l4.5 -4.5l4.5 4.5m-4.5 -4.5v9", "above the axis" },
    [PICTURE_BELOW] = { "below", "m-4.5 -5.5l4.5 4.5l4.5 -4.5m-4.5 4.5v-9", "below the axis" },
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

static double text_width(const char *text, size_t n)
{
    return CHARACTER * (double)text_columns(text, n);
}

/* A text element cut to this width; the whole text is shown when the pointer rests on it. */
static void draw_text(struct buffer *b, const char *class, double x, double y, double width, const char *text, size_t n)
{
    struct buffer cut = BUFFER_EMPTY;

    buffer_format(b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    if (text_width(text, n) <= width) {
        escape(b, text, n);
    } else {
        text_append_cut(&cut, text, n, (size_t)(width / CHARACTER), 0);
        b->failed |= cut.failed;
        escape(b, buffer_text(&cut), cut.length);
        buffer_append_text(b, "<title>");
        escape(b, text, n);
        buffer_append_text(b, "</title>");
    }
    buffer_append_text(b, "</text>\n");
    buffer_release(&cut);
}

static void draw_figure(struct buffer *b, double x, double y, const char *class, const char *text)
{
    buffer_format(b, "<text class=\"%s e\" x=\"%.1f\" y=\"%.1f\">%s</text>", class, x, y, text);
}

/* ---- axes ------------------------------------------------------------------------------------------------------ */

static void draw_axes(struct buffer *b, const struct picture *p, enum picture_axis axis,
                      const struct picture_svg_plot *f)
{
    const struct picture_range *r = &f->range;
    struct picture_ticks ticks;
    struct buffer notes = BUFFER_EMPTY;
    double bottom = f->top + f->height;
    char name[80];

    picture_value_ticks(p, r->y0, r->y1, TICKS, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = picture_svg_y(f, ticks.at[i]);

        buffer_format(b,
                      "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text class=\"tick e\" x=\"%.1f\" y=\"%.1f\">%s"
                      "</text>\n",
                      f->left, y, f->left + f->width, f->left - 8, y + 4, ticks.text[i]);
    }
    picture_axis_ticks(axis, r->x0, r->x1, TICKS, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = picture_svg_x(f, ticks.at[i]);

        buffer_format(b,
                      "<path class=\"axis\" d=\"M%.1f %.1fv5\"/><text class=\"tick m\" x=\"%.1f\" y=\"%.1f\">%s"
                      "</text>\n",
                      x, bottom, x, bottom + 18, ticks.text[i]);
    }
    buffer_format(b, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", f->left, f->top, bottom,
                  f->left + f->width);
    picture_axis_name(axis, r->x0, r->x1, name, sizeof name);
    picture_range_notes(p, r, &notes);
    buffer_format(b, "<text class=\"tick m\" x=\"%.1f\" y=\"%.1f\">%s%s<tspan class=\"b\">%s</tspan></text>\n",
                  f->left + f->width / 2, bottom + 34, name, notes.length ? "; " : "", buffer_text(&notes));
    buffer_release(&notes);
}

/* ---- marks and figures ------------------------------------------------------------------------------------------- */

/* Where runs share a colour, letters tell them apart. */
static int svg_lettered(const struct picture *p)
{
    return picture_shares_colours(p, RUN_COLOURS);
}

/* The height of a point's mark: those of values outside are at the edge. */
static double mark_y(const struct picture_svg_plot *f, enum picture_mark mark, double y)
{
    return mark == PICTURE_NAN                             ? picture_svg_y(f, y)
           : mark == PICTURE_PLUS || mark == PICTURE_ABOVE ? f->top
                                                           : f->top + f->height;
}

/* Draws marks of what the line does not show; of overlapping ones, only the first. wanted: 1 << mark. */
static void draw_marks(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                       const struct picture_svg_plot *f, const struct picture_curve *c, double smoothing,
                       unsigned wanted)
{
    struct picture_walk walk = picture_walk_begin(p, c, smoothing, f->range.y0, f->range.y1);
    double last[PICTURE_MARKS];
    struct picture_point q;
    enum picture_mark mark;

    for (int i = 0; i < PICTURE_MARKS; i++)
        last[i] = -INFINITY;
    while (picture_walk_next(&walk, &q, &mark)) {
        char at[64];

        if (!(wanted >> mark & 1) || fabs(picture_svg_x(f, q.x) - last[mark]) < 8)
            continue;
        last[mark] = picture_svg_x(f, q.x);
        picture_point_text(panel->axis, q.x, f->range.x0, f->range.x1, at, sizeof at);
        buffer_format(b, "<path class=\"%s c%zu\" d=\"M%.1f %.1f%s\"><title>", marks[mark].class,
                      picture_svg_colour(p, c->run), last[mark], mark_y(f, mark, q.y), marks[mark].path);
        escape(b, p->runs[c->run], strlen(p->runs[c->run]));
        buffer_format(b, ": %.6g at %s</title></path>\n", c->points[walk.next - 1].y, at);
    }
}

/* The end of a curve is a dot, its best value a ring; hovering shows the numbers. */
static void draw_figures(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                         const struct picture_svg_plot *f, const struct picture_curve *c,
                         const struct picture_summary *summary)
{
    const struct picture_point *points[2] = { summary->best, summary->last };
    const char *last = svg_lettered(p) ? "1.8" : "3.2",
               *best = svg_lettered(p) ? "3.5" : "5.5"; /* of many less is more */

    for (int i = 0; i < 2; i++) {
        struct picture_curve one = { .run = c->run, .points = points[i], .count = points[i] != NULL };
        struct picture_walk walk = picture_walk_begin(p, &one, 0, f->range.y0, f->range.y1);
        struct picture_point q;
        enum picture_mark mark;
        char at[64];

        if (!picture_walk_next(&walk, &q, &mark) || mark != PICTURE_LINE)
            continue;
        picture_point_text(panel->axis, q.x, f->range.x0, f->range.x1, at, sizeof at);
        buffer_format(b, "<circle class=\"%s c%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>", i ? "f last" : "best",
                      picture_svg_colour(p, c->run), picture_svg_x(f, q.x), picture_svg_y(f, q.y), i ? last : best);
        escape(b, p->runs[c->run], strlen(p->runs[c->run]));
        buffer_format(b, ": %s %.6g at %s</title></circle>\n", i ? "final" : "best", points[i]->y, at);
    }
}

/* ---- letters at the ends of curves ----------------------------------------------------------------------------- */

struct svg_line_end {
    size_t run;
    double x, y;
};

/* How many letters are side by side, so that there is room for all runs. */
static int letter_columns(const struct picture *p)
{
    return svg_lettered(p) ? (int)((p->run_count * LETTER + PLOT_HEIGHT - 1) / PLOT_HEIGHT) : 0;
}

static int svg_from_above(const void *a, const void *b)
{
    const struct svg_line_end *x = a, *y = b;

    return x->y != y->y ? (x->y > y->y) - (x->y < y->y) : (x->run > y->run) - (x->run < y->run);
}

/* Where the curve ends, as drawn: 0 if none of it is drawn. */
static int find_end(const struct picture *p, const struct picture_svg_plot *f, const struct picture_curve *c,
                    struct svg_line_end *out)
{
    struct picture_walk walk = picture_walk_begin(p, c, picture_smoothing_of(p, c), f->range.y0, f->range.y1);
    struct picture_point q;
    enum picture_mark mark;
    int any = 0;

    while (picture_walk_next(&walk, &q, &mark))
        if (mark != PICTURE_GAP) {
            *out = (struct svg_line_end){ c->run, picture_svg_x(f, q.x),
                                          picture_svg_y(f, fmax(f->range.y0, fmin(f->range.y1, q.y))) };
            any = 1;
        }
    return any;
}

/* Puts a letter for each curve to the right of the plot, as near to the height of its end as the others allow. */
static void draw_letters(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                         const struct picture_svg_plot *f)
{
    struct svg_line_end *ends = malloc((panel->count + 1) * sizeof *ends);
    double *places = malloc((panel->count + 1) * sizeof *places);
    size_t n = 0, columns = (size_t)letter_columns(p);

    if (!ends || !places) {
        b->failed = 1;
        goto out;
    }
    for (size_t i = 0; i < panel->count; i++)
        n += (size_t)find_end(p, f, &panel->curves[i], &ends[n]);
    qsort(ends, n, sizeof *ends, svg_from_above);
    for (size_t i = 0; i < n; i++)
        places[i] = ends[i].y;
    picture_spread(places, n, (double)LETTER / (double)columns, f->top, f->top + f->height);
    for (size_t i = 0; i < n; i++) {
        double x = f->left + f->width + 11 + (double)(i % columns) * (double)LETTER;
        size_t colour = picture_svg_colour(p, ends[i].run);

        buffer_format(b,
                      "<path class=\"lead c%zu\" d=\"M%.1f %.1fL%.1f %.1f\"/><text class=\"f letter m c%zu\" "
                      "x=\"%.1f\" y=\"%.1f\">%c</text>\n",
                      colour, ends[i].x, ends[i].y, x - 5, places[i], colour, x, places[i] + 4,
                      picture_letter(ends[i].run));
    }
out:
    free(ends);
    free(places);
}

/* ---- rows and legend ------------------------------------------------------------------------------------------- */

/* A sample of a run's line, its letter and its name, all within this width. */
static void draw_name(struct buffer *b, const struct picture *p, size_t run, double x, double y, double width)
{
    double name = SAMPLE_WIDTH + 8 + (svg_lettered(p) ? LETTER + 5 : 0);

    buffer_format(b, "<path class=\"line c%zu d%zu\" d=\"M%.1f %.1fh%d\"/>", picture_svg_colour(p, run),
                  picture_svg_dash(p, run), x, y - 4, SAMPLE_WIDTH);
    if (svg_lettered(p))
        buffer_format(b, "<text class=\"f letter m c%zu\" x=\"%.1f\" y=\"%.1f\">%c</text>", picture_svg_colour(p, run),
                      x + (double)SAMPLE_WIDTH + 11, y, picture_letter(run));
    draw_text(b, "row", x + name, y, width - name, p->runs[run], strlen(p->runs[run]));
}

static size_t rows_of(const struct picture_panel *panel)
{
    return panel->count > ROWS_MOST ? ROWS_MOST + 1 : panel->count;
}

/* Below the plot: run, final and best value, so that no one needs a ruler to read the picture. */
static void draw_rows(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                      const struct picture_svg_plot *f, const struct picture_summary *summaries)
{
    static const char *const at_names[PICTURE_AXES] = { "at step", "after steps", "at", "after" };
    double y = f->top + f->height + (double)AXIS + 12, right = f->left + f->width, left = f->left - (double)LEFT + 14;
    double column = right - (panel->better ? 2 * FIGURE : 0), width = column - (double)FIGURE - left;
    struct human_rounding rounding = { 0, 0, 0 };
    char text[HUMAN_TEXT_MAX], at[64];

    draw_figure(b, column, y, "tick", "final");
    if (panel->better) {
        draw_figure(b, right - (double)FIGURE, y, "tick", panel->better < 0 ? "best (min)" : "best (max)");
        draw_figure(b, right, y, "tick", at_names[panel->axis]);
    }
    for (size_t i = 0; i < panel->count; i++) {
        human_rounding_add(&rounding, summaries[i].last ? summaries[i].last->y : 0);
        human_rounding_add(&rounding, summaries[i].best ? summaries[i].best->y : 0);
    }
    for (size_t i = 0; i < panel->count && i < ROWS_MOST; i++) {
        struct picture_summary s = summaries[i];

        draw_name(b, p, panel->curves[i].run, left, y += (double)ROW, width);
        if (s.last)
            draw_figure(b, column, y, "row b", human_rounded(&rounding, s.last->y, text));
        if (s.best) {
            picture_point_text(panel->axis, s.best->x, f->range.x0, f->range.x1, at, sizeof at);
            draw_figure(b, right - (double)FIGURE, y, "row b", human_rounded(&rounding, s.best->y, text));
            draw_figure(b, right, y, "row", at);
        }
        buffer_append_text(b, "\n");
    }
    if (panel->count > ROWS_MOST)
        buffer_format(b, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">and %zu more</text>\n", left, y + (double)ROW,
                      panel->count - ROWS_MOST);
}

/* The legend of runs shared by several panels; returns how many lines. With b NULL only counts. */
static int draw_legend(struct buffer *b, const struct picture *p, double top, double width)
{
    double x = MARGIN, y = top + 12, most = width - 2 * MARGIN;
    int lines = 1;

    if (p->panel_count < 2)
        return 0;
    for (size_t i = 0; i < p->run_count; i++) {
        double wide = SAMPLE_WIDTH + 36 + (svg_lettered(p) ? LETTER : 0) + text_width(p->runs[i], strlen(p->runs[i]));

        wide = fmin(wide, most);
        if (x > (double)MARGIN && x + wide > width - (double)MARGIN) {
            x = MARGIN;
            y += (double)LEGEND_ROW;
            lines++;
        }
        if (b)
            draw_name(b, p, i, x, y, wide - 20);
        x += wide;
    }
    return lines;
}

/* The chosen options, in as many lines as needed; returns how many. With b NULL only counts. */
static int draw_settings(struct buffer *b, const struct picture *p, double top, double width)
{
    const char *text = p->settings ? p->settings : "";
    int lines = 0;

    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = picture_line_length(text, (size_t)((width - 2 * MARGIN) / CHARACTER));
        top += (double)SETTINGS;
        if (b)
            draw_text(b, "tick settings", MARGIN, top - 6, width, text, n);
        lines++;
    }
    return lines;
}

/* Explains the marks that are drawn, in one line. */
static void draw_meanings(struct buffer *b, unsigned found, int best, double y)
{
    double x = MARGIN + 8;

    buffer_format(b,
                  "<circle class=\"f last k\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\"/><text class=\"tick\" x=\"%.1f\" "
                  "y=\"%.1f\">final</text>",
                  x, y - 4, x + 10, y);
    x += 58;
    if (best)
        buffer_format(b,
                      "<circle class=\"best k\" cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\"/><text class=\"tick\" x=\"%.1f\" "
                      "y=\"%.1f\">best</text>",
                      x, y - 4, x + 11, y);
    x += best ? 60 : 0;
    for (int i = 0; i < PICTURE_MARKS; i++)
        if (marks[i].meaning && found >> i & 1) {
            double shift = i == PICTURE_PLUS || i == PICTURE_ABOVE ? -9 : i == PICTURE_NAN ? -4 : 0;

            buffer_format(b,
                          "<path class=\"%s k\" d=\"M%.1f %.1f%s\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\">%s"
                          "</text>",
                          marks[i].class, x, y + shift, marks[i].path, x + 11, y, marks[i].meaning);
            x += 28 + 6.2 * (double)strlen(marks[i].meaning);
        }
    buffer_append_text(b, "\n");
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

/* Returns 1 << mark of the marks that it shows. */
static unsigned svg_draw_panel(struct buffer *b, const struct picture *p, const struct picture_panel *panel,
                               double left, double top)
{
    const unsigned outside = 1u << PICTURE_ABOVE | 1u << PICTURE_BELOW;
    const unsigned broken = 1u << PICTURE_NAN | 1u << PICTURE_PLUS | 1u << PICTURE_MINUS;
    double width = PANEL_WIDTH - LEFT - RIGHT - letter_columns(p) * LETTER;
    struct picture_svg_plot f = { left + (double)LEFT,
                                  top + (double)TITLE,
                                  width,
                                  PLOT_HEIGHT,
                                  picture_range_of(p, panel, p->smoothing > 0, AIR),
                                  0,
                                  0 };
    struct picture_summary *summaries = malloc((panel->count + 1) * sizeof *summaries);

    if (!summaries || f.range.failed) {
        b->failed = 1;
        free(summaries);
        return 0;
    }
    f.per_x = f.width / (f.range.x1 - f.range.x0);
    f.per_y = f.height / (f.range.y1 - f.range.y0);
    for (size_t i = 0; i < panel->count; i++)
        summaries[i] = picture_summary_of(&panel->curves[i], panel->better);
    draw_text(b, "title", f.left, top + 22, width / 1.3, panel->title, panel->title_length);
    draw_axes(b, p, panel->axis, &f);
    for (size_t i = 0; i < panel->count; i++)
        if (panel->curves[i].low)
            picture_svg_band(b, p, &f, &panel->curves[i]);
    for (size_t i = 0; i < panel->count; i++) {
        double smoothing = picture_smoothing_of(p, &panel->curves[i]);

        if (smoothing > 0)
            picture_svg_line(b, p, &f, &panel->curves[i], 0, "faint");
        picture_svg_line(b, p, &f, &panel->curves[i], smoothing, "line");
    }
    for (size_t i = 0; i < panel->count; i++) {
        if (f.range.marks & outside)
            draw_marks(b, p, panel, &f, &panel->curves[i], 0, outside);
        if (f.range.marks & broken)
            draw_marks(b, p, panel, &f, &panel->curves[i], picture_smoothing_of(p, &panel->curves[i]), broken);
        draw_figures(b, p, panel, &f, &panel->curves[i], &summaries[i]);
    }
    if (svg_lettered(p))
        draw_letters(b, p, panel, &f);
    draw_rows(b, p, panel, &f, summaries);
    free(summaries);
    return f.range.marks;
}

static void draw_colours(struct buffer *b, int dark)
{
    for (int i = 0; i < RUN_COLOURS; i++) {
        const char *colour = dark ? styles[i].dark : styles[i].light;

        buffer_format(b, ".c%d{stroke:%s}.f.c%d{fill:%s;stroke:none}\n", i, colour, i, colour);
    }
    buffer_format(b, ".k{stroke:%s}.f.k{fill:%s;stroke:none}\n", dark ? "#9198a1" : "#57606a",
                  dark ? "#9198a1" : "#57606a");
}

static void draw_style(struct buffer *b)
{
    buffer_append_text(
        b,
        "<style>\n"
        "svg{background:#fff}text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}\n"
        ".ground{fill:#fff}.heading{font-size:19px;font-weight:600}.title{font-size:16px;font-weight:600}\n"
        ".tick{font-size:11.5px;fill:#57606a}.row{font-size:12.5px}.b{font-weight:600}.letter{font-size:11px;"
        "font-weight:600}.m{text-anchor:middle}.e{text-anchor:end}\n"
        ".grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#8c959f;stroke-width:1;fill:none}\n"
        ".line{fill:none;stroke-width:2;stroke-linejoin:round}.faint{fill:none;stroke-width:1;opacity:.3}"
        ".lead{stroke-width:1;opacity:.5}\n"
        ".band{opacity:.18}.best,.plus,.minus,.above,.below{fill:none;stroke-width:1.6}\n");
    draw_colours(b, 0);
    for (int i = 0; i < RUN_COLOURS; i++)
        if (*styles[i].dash)
            buffer_format(b, ".line.d%d{stroke-dasharray:%s}", i, styles[i].dash);
    buffer_append_text(b, "\n@media(prefers-color-scheme:dark){\n"
                          "svg{background:#0d1117}.ground{fill:#0d1117}text{fill:#e6edf3}.tick{fill:#9198a1}"
                          ".grid{stroke:#262c36}.axis{stroke:#6e7681}\n");
    draw_colours(b, 1);
    buffer_append_text(b, "}\n</style>\n");
}

struct picture_size picture_svg_draw(struct buffer *b, const struct picture *p)
{
    size_t usual = p->panel_count <= 1 ? 1 : p->panel_count == 2 || p->panel_count == 4 ? 2 : 3;
    size_t columns = p->columns ? p->columns : usual;
    size_t lines = (p->panel_count + columns - 1) / columns, rows = 0;
    double panel_height, width, height, top = MARGIN, legend;
    unsigned found = 0;
    int best = 0, legend_lines;

    for (size_t i = 0; i < p->panel_count; i++) {
        rows = rows_of(&p->panels[i]) > rows ? rows_of(&p->panels[i]) : rows;
        best |= p->panels[i].better != 0;
    }
    panel_height = TITLE + PLOT_HEIGHT + AXIS + (double)(rows + 1) * (double)ROW;
    width = 2 * MARGIN + (double)columns * (double)PANEL_WIDTH + (double)(columns - 1) * (double)GAP;
    top += p->title ? HEADING : 0;
    legend = top += SETTINGS * draw_settings(NULL, p, top, width);
    legend_lines = draw_legend(NULL, p, legend, width);
    top += legend_lines ? LEGEND + LEGEND_ROW * (legend_lines - 1) : 0;
    height = top + (double)lines * panel_height + (double)(lines ? lines - 1 : 0) * (double)GAP + 2 * MARGIN;
    buffer_format(b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
                  "role=\"img\">\n<title>",
                  width, height, width, height);
    for (size_t i = 0; i < p->run_count; i++) {
        buffer_append_text(b, i ? ", " : "");
        escape(b, p->runs[i], strlen(p->runs[i]));
    }
    buffer_append_text(b, "</title>\n");
    draw_style(b);
    buffer_format(b, "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
    if (p->title)
        draw_text(b, "heading", MARGIN, MARGIN + 16, (width - 2 * MARGIN) / 1.5, p->title, strlen(p->title));
    draw_settings(b, p, MARGIN + (p->title ? HEADING : 0), width);
    draw_legend(b, p, legend, width);
    for (size_t i = 0; i < p->panel_count; i++)
        found |= svg_draw_panel(b, p, &p->panels[i], (double)MARGIN + (double)(i % columns) * (PANEL_WIDTH + GAP),
                                top + (double)(i / columns) * (panel_height + (double)GAP));
    draw_meanings(b, found, best, height - 16);
    buffer_append_text(b, "</svg>\n");
    return (struct picture_size){ width, height };
}
