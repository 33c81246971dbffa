#include "eventlog/tool/picture/picture_svg_curve.h"

#include <math.h>

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
